#include <catch2/catch.hpp>

#include "test/optimizer/one_rank.hpp"
#include "test/optimizer/simulated_training.hpp"

using namespace rankine;
using namespace rankine::test;

namespace {

constexpr int k_steps = 7;  // two epochs and a step

std::string final_bits(const Problem& problem, const Arrangement& arrangement) {
  SimulatedTraining training(problem, arrangement);
  for (int i = 0; i < k_steps; ++i) training.step();
  const std::string bits = training.bits(0);
  for (int rank = 1; rank < arrangement.ranks; ++rank) {
    INFO("rank " << rank);
    CHECK((training.bits(rank) == bits));
  }
  return bits;
}

const std::string k_cosine =
    envelope("CosineDecay", R"("initial_learning_rate": 0.1, "decay_steps": 5, "alpha": 0.1)",
             "keras.optimizers.schedules");

const std::vector<std::string> k_configs{
    envelope("SGD", R"("learning_rate": 0.1, "momentum": 0.9, "nesterov": true, "clipvalue": 0.3)"),
    envelope("Adam", R"("amsgrad": true, "clipnorm": 1.0, "learning_rate": )" + k_cosine),
    envelope("AdamW", R"("learning_rate": 0.01, "weight_decay": 0.1, "global_clipnorm": 2.0,
                         "gradient_accumulation_steps": 2)"),
};

}  // namespace

TEST_CASE("every layout gives the bits of one rank", "[optimizer][bits]") {
  for (const std::string& config : k_configs) {
    INFO(config);
    const Problem problem = mixed_problem(config);
    const std::string wanted = final_bits(problem, {});
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (int accumulate = 1; accumulate <= 4; ++accumulate) {
        for (const std::int64_t bytes : {1, 1024, 1 << 20}) {
          INFO(ranks << " ranks, accumulate " << accumulate << ", buckets of " << bytes);
          const Arrangement arrangement{ranks, accumulate, {bytes, 2 * bytes}, ranks % 2 == 0};
          CHECK((final_bits(problem, arrangement) == wanted));
        }
      }
    }
  }
}

TEST_CASE("other gradients give other bits", "[optimizer][bits]") {
  Problem problem = mixed_problem(k_configs[0]);
  const std::string wanted = final_bits(problem, {});
  problem.step_leaves = {13, 13, 6};
  CHECK_FALSE((final_bits(problem, {}) == wanted));
}

TEST_CASE("more ranks than leaves leave ranks without passes", "[optimizer][bits]") {
  Problem problem = mixed_problem(k_configs[1]);
  problem.step_leaves = {2, 1, 3};
  const std::string wanted = final_bits(problem, {});
  for (const int ranks : {2, 3, 8}) CHECK((final_bits(problem, {ranks, 2, {1024, 1024}, true}) == wanted));
}

TEST_CASE("a resume at any step goes on with the same bits", "[optimizer][bits]") {
  for (const std::string& config : k_configs) {
    INFO(config);
    const Problem problem = mixed_problem(config);
    const std::string wanted = final_bits(problem, {});
    for (int at = 0; at < k_steps; ++at) {
      SimulatedTraining first(problem, {3, 1, {1024, 1024}, false});
      while (first.steps() < at) first.step();
      SimulatedTraining second(problem, {2, 2, {1, 1}, false});
      second.resume_from(first);
      while (second.steps() < k_steps) second.step();
      CHECK((second.bits(0) == wanted));
      CHECK((second.bits(1) == wanted));
    }
  }
}

TEST_CASE("buckets are reduced in order on every rank", "[optimizer][bits]") {
  const Problem problem = mixed_problem(k_configs[0]);
  SimulatedTraining training(problem, {8, 2, {512, 512}, true});
  for (int i = 0; i < 3; ++i) training.step();  // a mismatch throws
  CHECK(training.group().sums() % 3 == 0);
  const std::size_t buckets = training.group().sums() / 3;
  CHECK(buckets > 3);
  for (std::size_t b = 0; b < buckets; ++b) {
    CHECK(training.group().sum(b).call == training.group().sum(buckets + b).call);
  }
}

TEST_CASE("nothing is allocated while training", "[optimizer][bits]") {
  const Problem problem = mixed_problem(k_configs[2]);
  for (const int ranks : {1, 3, 8}) {
    for (const int accumulate : {1, 3}) {
      SimulatedTraining training(problem, {ranks, accumulate, {}, false});
      std::vector<std::size_t> before;
      for (int rank = 0; rank < ranks; ++rank) before.push_back(training.backend(rank).allocated);
      for (int i = 0; i < 4; ++i) training.step();
      for (int rank = 0; rank < ranks; ++rank) {
        CHECK(training.backend(rank).allocated == before[static_cast<std::size_t>(rank)]);
      }
    }
  }
}
