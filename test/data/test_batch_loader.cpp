#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "runtime/data/batch_loader.hpp"
#include "runtime/data/hdf5_dataset.hpp"
#include "runtime/error.hpp"
#include "test/data/scratch.hpp"

using namespace rankine;
using Catch::Contains;

namespace {

/// Sample i has the input i and the target -i. Reading sample `poison` fails.
class CountingDataset final : public Dataset {
 public:
  explicit CountingDataset(std::int64_t samples, std::int64_t poison = -1)
      : samples_(samples), poison_(poison) {}
  std::int64_t samples() const override { return samples_; }
  const std::vector<Field>& inputs() const override { return inputs_; }
  const std::vector<Field>& targets() const override { return targets_; }
  std::int64_t bytes_read() const override { return bytes_read_; }
  std::string description() const override { return "counted"; }
  void read(std::span<const std::int64_t> indices, std::span<const Tensor> into) override {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == poison_) throw DataError("sample " + std::to_string(poison_) + " is damaged");
      into[0].as<float>()[i] = static_cast<float>(indices[i]);
      into[1].as<std::int32_t>()[i] = -static_cast<std::int32_t>(indices[i]);
    }
    bytes_read_ += std::ssize(indices) * 8;
  }

 private:
  std::int64_t samples_;
  std::int64_t poison_;
  std::atomic<std::int64_t> bytes_read_ = 0;
  std::vector<Field> inputs_{{"x", {Shape{1}, DType::float32}}};
  std::vector<Field> targets_{{"y", {Shape{}, DType::int32}}};
};

BatchShare share_of(int ranks, int rank) {
  return [=](std::int64_t samples) {
    return std::vector<Range>{split_evenly(samples, ranks)[static_cast<std::size_t>(rank)]};
  };
}

BatchShare whole() {
  return share_of(1, 0);
}

std::vector<std::int64_t> samples_in(const Batch& batch) {
  std::vector<std::int64_t> samples;
  for (const float x : batch.inputs[0].span<float>()) samples.push_back(static_cast<std::int64_t>(x));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    REQUIRE(batch.targets[0].as<std::int32_t>()[i] == -samples[i]);
  }
  return samples;
}

}  // namespace

TEST_CASE("epochs are cut into batches as Keras cuts them", "[data]") {
  const BatchSchedule schedule{10, 4};
  CHECK(schedule.steps_per_epoch() == 3);
  CHECK(schedule.at(1) == BatchPlace{1, 0, 4, false});
  CHECK(schedule.at(3) == BatchPlace{1, 8, 2, true});
  CHECK(schedule.at(4) == BatchPlace{2, 0, 4, false});
  CHECK(BatchSchedule{8, 4}.at(2) == BatchPlace{1, 4, 4, true});
  CHECK(BatchSchedule{3, 100}.at(7) == BatchPlace{7, 0, 3, true});
}

TEST_CASE("one to eight ranks see each sample of an epoch exactly once, at the same places",
          "[data][threads]") {
  constexpr std::int64_t k_samples = 37;
  constexpr std::int64_t k_batch = 10;  // the last batch of an epoch has 7: fewer than eight ranks
  const SampleOrder order(k_samples, 9, true);
  std::vector<std::vector<std::int64_t>> of_one_rank;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    CAPTURE(ranks);
    std::vector<std::vector<std::int64_t>> steps(8);  // two epochs
    std::int64_t most_bytes = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      CountingDataset data(k_samples);
      BatchLoader loader(BatchReader(data, order, k_batch, share_of(ranks, rank)), 1, 8);
      for (std::int64_t step = 1; step <= 8; ++step) {
        const Batch& batch = loader.next();
        REQUIRE(batch.step == step);
        REQUIRE(batch.place.samples == (step % 4 == 0 ? 7 : 10));
        REQUIRE(batch.inputs[0].shape == Shape{batch.rows(), 1});
        REQUIRE(batch.targets[0].shape == Shape{batch.rows()});
        REQUIRE(batch.inputs[0]);
        auto& samples = steps[static_cast<std::size_t>(step - 1)];
        for (const std::int64_t sample : samples_in(batch)) samples.push_back(sample);
      }
      most_bytes = std::max(most_bytes, data.bytes_read());
    }
    CHECK(most_bytes <= (2 * k_samples * 8) / ranks + 8 * 8);
    for (std::size_t epoch = 0; epoch < 2; ++epoch) {
      std::multiset<std::int64_t> seen;
      for (std::size_t i = 0; i < 4; ++i)
        seen.insert(steps[4 * epoch + i].begin(), steps[4 * epoch + i].end());
      REQUIRE(seen.size() == k_samples);
      REQUIRE(std::set<std::int64_t>(seen.begin(), seen.end()).size() == k_samples);
    }
    if (ranks == 1) of_one_rank = steps;
    CHECK(steps == of_one_rank);
  }
}

TEST_CASE("each rank reads its share of a file and no more", "[data][hdf5]") {
  const test::ScratchFolder folder;
  const std::string path = folder / "data.h5";
  constexpr hsize_t k_samples = 100;
  test::Hdf5Writer(path)
      .array("/inputs/x", {k_samples, 5}, std::vector<float>(k_samples * 5, 1.0F))
      .array("/targets/y", {k_samples}, std::vector<std::int32_t>(k_samples));
  const DataRequest request{{{"x", {Shape{5}, DType::float32}}}, {{"y", {Shape{}, DType::int32}}}};
  std::int64_t all = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const auto data = open_hdf5_dataset(path, request);
    BatchReader reader(*data, SampleOrder(k_samples, 1, true), 30, share_of(3, rank));
    BatchReader::Memory memory;
    for (std::int64_t step = 1; step <= 4; ++step) reader.read(step, memory);
    CHECK(data->bytes_read() <= 34 * 24);
    all += data->bytes_read();
  }
  CHECK(all == k_samples * 24);
}

TEST_CASE("a share of several ranges comes one range after another", "[data]") {
  CountingDataset data(20);
  BatchReader reader(data, SampleOrder(20, 0, false), 20, [](std::int64_t) {
    return std::vector<Range>{{2, 4}, {7, 7}, {11, 14}};
  });
  BatchReader::Memory memory;
  reader.read(1, memory);
  CHECK(samples_in(memory.batch) == std::vector<std::int64_t>{2, 3, 11, 12, 13});
  CHECK(memory.batch.ranges == std::vector<Range>{{2, 4}, {11, 14}});
}

TEST_CASE("a rank without samples gets tensors of no rows", "[data]") {
  CountingDataset data(20);
  BatchLoader loader(
      BatchReader(data, SampleOrder(20, 0, true), 4, [](std::int64_t) { return std::vector<Range>{}; }), 1,
      5);
  for (int step = 1; step <= 5; ++step) {
    const Batch& batch = loader.next();
    CHECK(batch.rows() == 0);
    CHECK(batch.inputs[0]);
    CHECK(batch.inputs[0].shape == Shape{0, 1});
  }
  CHECK(data.bytes_read() == 0);
}

TEST_CASE("memory of a batch is kept from step to step", "[data][threads]") {
  CountingDataset data(100);
  BatchLoader loader(BatchReader(data, SampleOrder(100, 0, true), 9, whole()), 1, 60);
  std::set<const void*> places;
  for (int step = 1; step <= 60; ++step) places.insert(loader.next().inputs[0].data);
  CHECK(places.size() == 2);
}

TEST_CASE("the next batch is read while one is in use", "[data][threads]") {
  CountingDataset data(100);
  BatchLoader loader(BatchReader(data, SampleOrder(100, 0, true), 10, whole()), 1, 10);
  loader.next();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (data.bytes_read() < 2 * 80 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(data.bytes_read() == 2 * 80);  // and not a third, which would overwrite the first
}

TEST_CASE("an error while reading reaches the step that needs the batch", "[data][threads]") {
  CountingDataset data(40, 25);
  BatchLoader loader(BatchReader(data, SampleOrder(40, 0, false), 10, whole()), 1, 4);
  CHECK_NOTHROW(loader.next());
  CHECK_NOTHROW(loader.next());
  CHECK_THROWS_WITH(loader.next(), Contains("sample 25 is damaged"));
  CHECK_THROWS_AS(loader.next(), DataError);
}

TEST_CASE("training may stop or start anywhere", "[data][threads]") {
  const SampleOrder order(37, 4, true);
  CountingDataset data(37);
  std::vector<std::vector<std::int64_t>> through;
  {
    BatchLoader loader(BatchReader(data, order, 10, whole()), 1, 9);
    for (int step = 1; step <= 9; ++step) through.push_back(samples_in(loader.next()));
  }
  BatchLoader resumed(BatchReader(data, order, 10, whole()), 6, 9);
  CHECK(samples_in(resumed.next()) == through[5]);
  CHECK(samples_in(resumed.next()) == through[6]);
  // Two batches are left: destroying the loader neither waits for them nor hangs.
}

TEST_CASE("a batch below 1 is refused", "[data]") {
  CountingDataset data(4);
  CHECK_THROWS_WITH(BatchReader(data, SampleOrder(4, 0, true), 0, whole()), Contains("1 sample or more"));
  CHECK_THROWS_AS(BatchReader(data, SampleOrder(5, 0, true), 1, whole()), ConfigError);
}
