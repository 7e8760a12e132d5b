#include <catch2/catch.hpp>

#include "runtime/error.hpp"
#include "runtime/mesh/device.hpp"

using namespace rankine;
using Catch::Matchers::Contains;

namespace {

DeviceFacts facts(int visible, int local_rank, int local_size) {
  DeviceFacts f;
  f.visible = visible;
  f.rank = 8 + local_rank;
  f.local_rank = local_rank;
  f.local_size = local_size;
  f.host = "node7";
  return f;
}

std::string refusal(const DeviceFacts& f) {
  try {
    choose_device(f);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("each local rank gets its device", "[device]") {
  CHECK(choose_device(facts(0, 3, 4)) == DeviceChoice{true, 0});
  CHECK(choose_device(facts(4, 0, 4)) == DeviceChoice{false, 0});
  CHECK(choose_device(facts(4, 3, 4)) == DeviceChoice{false, 3});
  // Slurm shows each task one device: then every local rank uses number 0.
  CHECK(choose_device(facts(1, 3, 4)) == DeviceChoice{false, 0});
}

TEST_CASE("more ranks than devices are refused unless sharing is allowed", "[device]") {
  auto f = facts(2, 2, 3);
  f.visible_devices = "0,1";
  CHECK_THAT(refusal(f), Contains("rank 10 @ node7") && Contains("local rank 2 of 3") &&
                             Contains("2 GPU(s) visible (CUDA_VISIBLE_DEVICES=0,1)") &&
                             Contains("at most 2 ranks on a host"));
  f.share = true;
  CHECK(choose_device(f) == DeviceChoice{false, 0});
}

TEST_CASE("the user's choice wins, if it exists", "[device]") {
  auto f = facts(2, 1, 2);
  f.wanted = DeviceFacts::k_cpu;
  CHECK(choose_device(f).is_cpu);
  f.wanted = 0;
  CHECK(choose_device(f) == DeviceChoice{false, 0});
  f.wanted = 2;
  CHECK_THAT(refusal(f), Contains("device 2 was asked for, but 2 GPU(s) visible"));
  f = facts(0, 0, 1);
  f.wanted = 0;
  CHECK_THAT(refusal(f), Contains("0 GPU(s) visible"));
}

TEST_CASE("two ranks on one GPU are named", "[device]") {
  CHECK(describe_shared_devices({{"a", "GPU-1"}, {"a", "GPU-2"}, {"b", "GPU-3"}}).empty());
  CHECK(describe_shared_devices({{"a", ""}, {"a", ""}}).empty());
  CHECK(describe_shared_devices(
            {{"a", "GPU-1"}, {"a", "GPU-2"}, {"a", "GPU-1"}, {"a", "GPU-1"}, {"a", "GPU-2"}}) ==
        "ranks 0 and 2 and 3 use one GPU, GPU-1 @ a.\nranks 1 and 4 use one GPU, GPU-2 @ a.");
}

TEST_CASE("discovery finds devices or says why not", "[device]") {
  const auto found = discover_devices();
  CHECK(found.devices.empty() != found.why_none.empty());
}
