#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/error.hpp"
#include "runtime/mesh/agree.hpp"
#include "runtime/mesh/mesh.hpp"
#include "test/launched.hpp"

using namespace rankine;
using Catch::Matchers::Contains;

TEST_CASE("the world counts its ranks", "[communicator]") {
  auto& world = test::world();
  CHECK(world.communicator().size() == world.size());
  CHECK(world.communicator().rank() == world.rank());
  CHECK(world.nodes().nodes == 1);
  CHECK(world.nodes().local_rank[static_cast<std::size_t>(world.rank())] == world.rank());
  CHECK(world.prefix() == "[rank " + std::to_string(world.rank()) + " @ " + world.host() + "] ");
  CHECK_THAT(mpi_version(), Contains("MPI 3"));
}

TEST_CASE("texts of any length reach everybody", "[communicator]") {
  test::for_groups(1, 8, [](Communicator& group) {
    const auto text_of = [](int rank) { return std::string(static_cast<std::size_t>(rank * rank), 'x'); };
    const auto texts = group.all_gather_text(text_of(group.rank()));
    for (int r = 0; r < group.size(); ++r) CHECK(texts[static_cast<std::size_t>(r)] == text_of(r));
  });
}

TEST_CASE("uneven pieces are gathered", "[communicator]") {
  test::for_groups(1, 8, [](Communicator& group) {
    for (const std::int64_t count : {0, 1, 3, 1000}) {
      const auto pieces = split_evenly(count, group.size());
      std::vector<double> data(static_cast<std::size_t>(count), -1);
      const Range mine = pieces[static_cast<std::size_t>(group.rank())];
      for (std::int64_t i = mine.begin; i < mine.end; ++i) data[static_cast<std::size_t>(i)] = 3.0 * i;
      group.all_gather(DType::float64, data.data(), pieces)->wait();
      for (std::int64_t i = 0; i < count; ++i) CHECK(data[static_cast<std::size_t>(i)] == 3.0 * i);
    }
  });
}

TEST_CASE("integers are added, and extremes found", "[communicator]") {
  test::for_groups(1, 8, [](Communicator& group) {
    const std::int64_t big = std::int64_t{1} << 60;
    std::vector<std::int64_t> sum = {big + group.rank(), -group.rank()};
    auto max = sum;
    auto min = sum;
    group.all_reduce(std::span(sum), ReduceOp::sum)->wait();
    group.all_reduce(std::span(max), ReduceOp::max)->wait();
    group.all_reduce(std::span(min), ReduceOp::min)->wait();
    const std::int64_t n = group.size();
    if (n < 8) CHECK(sum[0] == big * n + n * (n - 1) / 2);  // eight of them don't fit
    CHECK(sum[1] == -(n * (n - 1) / 2));
    CHECK(max == std::vector<std::int64_t>{big + n - 1, 0});
    CHECK(min == std::vector<std::int64_t>{big, -(n - 1)});
  });
}

TEST_CASE("extremes of doubles are exact", "[communicator]") {
  test::for_groups(2, 8, [](Communicator& group) {
    const bool last = group.rank() + 1 == group.size();
    std::vector<double> max = {1.5 * group.rank(), last ? 0.0 : -0.0, last ? NAN : INFINITY};
    auto min = max;
    group.all_reduce(std::span(max), ReduceOp::max)->wait();
    group.all_reduce(std::span(min), ReduceOp::min)->wait();
    CHECK(max[0] == 1.5 * (group.size() - 1));
    CHECK(min[0] == 0);
    CHECK((max[1] == 0 && !std::signbit(max[1])));
    CHECK((min[1] == 0 && std::signbit(min[1])));
    CHECK(std::isnan(max[2]));
    CHECK(std::isnan(min[2]));
    CHECK_THROWS_AS(group.all_reduce(std::span(max), ReduceOp::sum), CommunicationError);
  });
}

TEST_CASE("a broadcast reaches everybody from any root", "[communicator]") {
  test::for_groups(1, 8, [](Communicator& group) {
    for (int root = 0; root < group.size(); ++root) {
      std::vector<int> data(1000, group.rank() == root ? root + 7 : -1);
      group.broadcast(data.data(), data.size() * sizeof(int), root)->wait();
      CHECK(data == std::vector<int>(1000, root + 7));
    }
    CHECK_THROWS_AS(group.broadcast(nullptr, 0, group.size()), CommunicationError);
  });
}

TEST_CASE("groups are split by colour and ordered by key", "[communicator]") {
  test::for_groups(2, 8, [](Communicator& group) {
    const int colour = group.rank() % 2;
    const auto part = group.split(colour, -group.rank(), "part");
    CHECK(part->size() == (group.size() + 1 - colour) / 2);
    CHECK(part->name() == "part");
    const auto members = part->all_gather_text(std::to_string(group.rank()));
    for (int r = 0; r < part->size(); ++r) {
      CHECK(members[static_cast<std::size_t>(r)] == std::to_string(colour + 2 * (part->size() - 1 - r)));
      CHECK_THAT(part->member(r), Contains("rank " + members[static_cast<std::size_t>(r)] + " @ "));
    }
    const auto some = group.split(group.rank() == 0 ? -1 : 0, 0, "all but the first");
    CHECK((some == nullptr) == (group.rank() == 0));
  });
}

TEST_CASE("a mesh has its tensor axis inside", "[communicator]") {
  test::for_groups(1, 8, [](Communicator& group) {
    for (int tensor = 1; tensor <= group.size(); ++tensor) {
      if (group.size() % tensor != 0) continue;
      Mesh mesh(group, {group.size() / tensor, tensor});
      CHECK(mesh.tensor().size() == tensor);
      CHECK(mesh.data().size() == group.size() / tensor);
      CHECK(mesh.data().rank() * tensor + mesh.tensor().rank() == group.rank());
    }
  });
}

TEST_CASE("an error on some ranks becomes one error on all", "[communicator]") {
  test::for_groups(1, 8, [](Communicator& group) {
    CHECK_NOTHROW(agree(group, [] {}));
    const auto message = [&](const std::function<void()>& act) -> std::string {
      try {
        agree(group, act);
      } catch (const Error& e) {
        return std::to_string(static_cast<int>(e.exit_code())) + ": " + e.what();
      }
      return "no error";
    };
    const int last = group.size() - 1;
    const auto prefix = group.size() == 1 ? std::string() : "[" + group.member(last) + "] ";
    CHECK(message([&] {
            if (group.rank() == last) throw CheckpointError("the file is short");
          }) == "4: " + prefix + "the file is short");
    CHECK(message([&] { throw UsageError("batch 0"); }) == "2: batch 0");
    CHECK(message([&] { throw Error(ExitCode::stopped, "asked to stop"); }) == "75: asked to stop");
    CHECK_THAT(message([&] {
                 if (group.rank() == last) throw std::bad_alloc();
               }),
               Contains("70: " + prefix + "out of memory"));
    CHECK_THAT(message([&] {
                 if (group.rank() == last) throw 5;
               }),
               Contains("unexpected error of a type"));
    // The lowest failing rank speaks, and the class is kept.
    CHECK_THROWS_AS(agree(group, [&] { throw DataError("row " + std::to_string(group.rank())); }), DataError);
    CHECK_THAT(message([&] { throw DataError("row " + std::to_string(group.rank())); }), Contains("row 0"));
    CHECK_NOTHROW(agree(group, [] {}));
  });
}
