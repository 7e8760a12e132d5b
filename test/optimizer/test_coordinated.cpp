#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "optimizer/reducer.hpp"
#include "runtime/error.hpp"
#include "test/optimizer/one_rank.hpp"
#include "test/optimizer/simulated_training.hpp"

using namespace rankine;
using namespace rankine::test;
using Catch::Matchers::Contains;

namespace {

/// Two ranks with one leaf each; a variable of `count` elements with one use.
struct TwoRanks {
  explicit TwoRanks(const std::string& config, std::int64_t count) {
    for (std::size_t r = 0; r < 2; ++r) {
      weights[r].assign(static_cast<std::size_t>(count), 0.0F);
      Variable variable;
      variable.path = "dense/kernel";
      variable.shape = {count};
      variable.value = {weights[r].data(), DType::float32, variable.shape};
      variables[r] = {variable};
      optimizers[r] = make_optimizer(config);
      const GradientUse use{0};
      optimizers[r]->attach(variables[r], {&use, 1}, group[static_cast<int>(r)], backend);
    }
  }
  UpdateReport step(const Values& first, const Values& second) {
    const Values* gradients[]{&first, &second};
    for (std::size_t r = 0; r < 2; ++r) {
      optimizers[r]->begin_step({1, {2, {{0, 1}, {1, 2}}}});
      optimizers[r]->begin_pass({0, static_cast<std::int64_t>(r)}, true);
      std::copy(gradients[r]->begin(), gradients[r]->end(), optimizers[r]->gradient(0).as<float>());
      optimizers[r]->gradient_ready(0);
    }
    const UpdateReport report = optimizers[0]->apply();
    CHECK(optimizers[1]->apply().gradient_norm == report.gradient_norm);
    CHECK(weights[0] == weights[1]);
    return report;
  }

  HostBackend backend;
  SimulatedGroup group{2};
  std::array<Values, 2> weights;
  std::array<std::vector<Variable>, 2> variables;
  std::array<std::unique_ptr<Optimizer>, 2> optimizers;
};

}  // namespace

TEST_CASE("the norm counts every element once", "[optimizer][clip]") {  // HAND-4, on the data axis
  TwoRanks run(envelope("SGD", R"("learning_rate": 1.0, "global_clipnorm": 1.3)"), 3);
  CHECK(run.step({3, 0, 5}, {0, 4, 7}).gradient_norm == 13.0);
  CHECK(close(run.weights[0], {-0.3, -0.4, -1.2}, 1e-6));
  CHECK(elements(run.optimizers[1]->reduced_gradient(0)) == std::vector<double>{3, 4, 12});
}

TEST_CASE("gradients are clipped after the reduction", "[optimizer][clip]") {
  TwoRanks run(envelope("SGD", R"("learning_rate": 1.0, "clipvalue": 1.0)"), 2);
  run.step({10, 10}, {-10, 10});
  CHECK(run.weights[0] == Values{0, -1});
  TwoRanks norm(envelope("SGD", R"("learning_rate": 1.0, "clipnorm": 1.0)"), 2);
  norm.step({3, 0}, {0, 4});
  CHECK(close(norm.weights[0], {-0.6, -0.8}, 1e-6));
}

TEST_CASE("a shared variable's gradient is the sum of its uses in their order", "[optimizer]") {
  HostBackend backend;
  SimulatedGroup group(1);
  float shared = 0.0F, other = 0.0F;
  std::vector<Variable> variables(2);
  variables[0].value = {&shared, DType::float32, {}};
  variables[1].value = {&other, DType::float32, {}};
  const std::vector<GradientUse> uses{{0}, {1}, {0}, {0}};
  const float gradients[]{1.0F, 5.0F, 0x1p-24F, 0x1p-24F};
  const auto optimizer = make_optimizer(envelope("SGD", R"("learning_rate": 1.0)"));
  optimizer->attach(variables, uses, group[0], backend);
  optimizer->begin_step({1, {1, {{0, 1}}}});
  optimizer->begin_pass({0, 0}, true);
  for (int use = 0; use < 4; ++use) {
    *optimizer->gradient(use).as<float>() = gradients[use];
    optimizer->gradient_ready(use);
  }
  optimizer->apply();
  CHECK(shared == -1.0F);  // (1 + 2^-24) + 2^-24; from the right it would be 1 + 2^-23
  CHECK(other == -5.0F);

  const float large[]{1.0F, 5.0F, 10.0F, 100.0F};
  optimizer->begin_step({2, {1, {{0, 1}}}});
  optimizer->begin_pass({0, 0}, true);
  for (int use = 0; use < 4; ++use) {
    *optimizer->gradient(use).as<float>() = large[use];
    optimizer->gradient_ready(use);
  }
  CHECK(optimizer->apply().gradient_norm == Approx(std::hypot(111.0, 5.0)));
  CHECK(shared == -112.0F);
}

TEST_CASE("a gradient that isn't finite stops every rank by name", "[optimizer][numeric]") {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {inf, -inf, nan}) {
    TwoRanks run("adam", 3);
    CHECK_THROWS_AS(run.step({0, 0, 0}, {0, bad, bad}), NumericError);
    CHECK(run.weights[0] == Values{0, 0, 0});
    TwoRanks other("adam", 3);
    CHECK_THROWS_WITH(other.step({0, 0, 0}, {0, bad, bad}),
                      Contains("step 1") && Contains("dense/kernel") && Contains("element 1 of shape (3,)"));
  }
  OneRank several("sgd",
                  {{"first/kernel", {1}, {1}}, {"second/kernel", {1}, {1}}, {"third/kernel", {1}, {1}}});
  several.step_all({{1}, {1}, {1}});
  CHECK_THROWS_WITH(several.step_all({{1}, {nan}, {nan}}), Contains("step 2") && Contains("second/kernel"));
}

TEST_CASE("a learning rate that isn't finite is said", "[optimizer][numeric]") {
  const std::string schedule =
      envelope("CosineDecayRestarts", R"("initial_learning_rate": 0.1, "first_decay_steps": 1, "t_mul": 0.5)",
               "keras.optimizers.schedules");
  OneRank run(envelope("SGD", R"("learning_rate": )" + schedule), Values{1.0F});
  run.step(Values{1});
  run.step(Values{1});
  CHECK_THROWS_WITH(run.step(Values{1}), Contains("learning rate isn't finite at iteration 2"));
}

TEST_CASE("nothing happens to weights before the first update", "[optimizer][state]") {
  OneRank run(envelope("AdamW", R"("weight_decay": 0.5)"), Values{1.0F, 2.0F});
  CHECK(run.weight() == Values{1, 2});
  const StateDict state = run.optimizer().state();
  REQUIRE(state.size() == 4);
  CHECK(state[0].role == StateRole::counter);
  CHECK(state[2].role == StateRole::slot);
  CHECK(elements(state[0].local) == std::vector<double>{0});
  CHECK(state[0].local.dtype == DType::int32);
  CHECK(state[0].global_shape == Shape{});
  CHECK(elements(state[2].local) == std::vector<double>{0, 0});
}

TEST_CASE("names never decide which slot belongs to which variable", "[optimizer][state]") {
  OneRank run(envelope("SGD", R"("momentum": 0.5, "learning_rate": 1.0)"),
              {{"dense/kernel", {1}, {0}}, {"dense_1/kernel", {1}, {0}}, {"dense/kernel", {1}, {0}}});
  run.step_all({{1}, {2}, {4}});
  const StateDict state = run.optimizer().state();
  REQUIRE(state.size() == 5);
  CHECK(state[3].path == "sgd/dense_1_kernel_momentum");
  CHECK(elements(state[2].local) == std::vector<double>{-1});
  CHECK(elements(state[3].local) == std::vector<double>{-2});
  CHECK(elements(state[4].local) == std::vector<double>{-4});
}

TEST_CASE("the state of Keras's models is listed as Keras lists it", "[optimizer][state]") {
  for (const std::string fixture : {"mlp_sgd", "mlp_adam_cosine", "einsum", "tiny_gpt", "gqa", "nested"}) {
    INFO(fixture);
    const auto read = [&](const std::string& name) {
      std::ifstream file(GOLDEN_FOLDER "/" + fixture + "/" + name);
      return nlohmann::json::parse(file);
    };
    const nlohmann::json expected = read("expected.json");
    std::vector<Variable> variables;
    for (const auto& entry : expected["variables"]) {
      Variable variable;
      variable.path = entry["path"];
      variable.shape = Shape(entry["shape"].get<std::vector<std::int64_t>>());
      variable.trainable = entry["trainable"];
      variables.push_back(variable);
    }
    HostBackend backend;
    SimulatedGroup group(1);
    const auto optimizer = make_optimizer(read("compile.json").dump());
    optimizer->attach(variables, {}, group[0], backend);
    const StateDict state = optimizer->state();
    const auto& wanted = expected["optimizer_variables"];
    REQUIRE(state.size() == wanted.size());
    for (std::size_t i = 0; i < state.size(); ++i) {
      CHECK("/" + state[i].structural_path == wanted[i]["h5"].get<std::string>());
      CHECK(state[i].path == wanted[i]["path"].get<std::string>());
      CHECK(state[i].global_shape.sizes() == wanted[i]["shape"].get<std::vector<std::int64_t>>());
    }
  }
}

TEST_CASE("counters are read back", "[optimizer][state]") {
  OneRank run(envelope("SGD", R"("learning_rate": 0.5)"), Values{0.0F});
  const StateDict state = run.optimizer().state();
  *state[0].local.as<std::int32_t>() = 41;
  *state[1].local.as<float>() = 0.25F;
  run.optimizer().state_changed();
  const UpdateReport report = run.step(Values{1});
  CHECK(report.update == 42);
  CHECK(report.learning_rate == 0.25);
  CHECK(run.weight() == Values{-0.25F});
}

TEST_CASE("float64 variables are updated in float64", "[optimizer][rule]") {
  for (const char* config : {"sgd", "adam", "adamw"}) {
    HostBackend backend;
    SimulatedGroup group(1);
    double weight = 1.0;
    Variable variable;
    variable.dtype = DType::float64;
    variable.shape = {};
    variable.value = {&weight, DType::float64, {}};
    const GradientUse use{0};
    const auto optimizer = make_optimizer(config);
    optimizer->attach({&variable, 1}, {&use, 1}, group[0], backend);
    OneRank single(config, Values{1.0F});
    for (int i = 1; i <= 5; ++i) {
      optimizer->begin_step({i, {1, {{0, 1}}}});
      optimizer->begin_pass({0, 0}, true);
      *optimizer->gradient(0).as<double>() = 0.1 * i;
      optimizer->gradient_ready(0);
      optimizer->apply();
      single.step(Values{0.1F * static_cast<float>(i)});
    }
    CHECK(weight == Approx(single.weight()[0]).epsilon(1e-6));
    CHECK(weight != static_cast<double>(static_cast<float>(weight)));
  }
}

TEST_CASE("an optimizer used wrongly says so", "[optimizer]") {
  TwoRanks run("sgd", 2);
  Optimizer& optimizer = *run.optimizers[0];
  CHECK_THROWS_AS(optimizer.begin_step({1, {2, {{0, 2}}}}), std::logic_error);
  CHECK_THROWS_AS(optimizer.begin_step({1, {0, {{0, 0}, {0, 0}}}}), std::logic_error);
  optimizer.begin_step({1, {2, {{0, 1}, {1, 2}}}});
  CHECK_THROWS_AS(optimizer.begin_pass({0, 1}, true), std::logic_error);  // the other rank's leaf
  optimizer.begin_step({1, {2, {{0, 1}, {1, 2}}}});
  optimizer.begin_pass({0, 0}, true);
  CHECK_THROWS_AS(optimizer.begin_pass({0, 1}, true), std::logic_error);  // after the last
  CHECK_THROWS_WITH(optimizer.apply(), Contains("weren't all ready"));
  optimizer.gradient_ready(0);
  CHECK_THROWS_WITH(optimizer.gradient_ready(0), Contains("twice"));

  Variable counter;
  counter.path = "counter";
  counter.dtype = DType::int32;
  CHECK_THROWS_WITH(make_optimizer("sgd")->attach({&counter, 1}, {}, run.group[0], run.backend),
                    Contains("counter is trainable and of dtype int32"));
  counter.trainable = false;
  const GradientUse use{0};
  CHECK_THROWS_AS(make_optimizer("sgd")->attach({&counter, 1}, {&use, 1}, run.group[0], run.backend),
                  std::logic_error);
}

TEST_CASE("pending copies follow the passes", "[optimizer][reducer]") {
  const Node whole[]{{3, 0}};
  CHECK(pending_copies(whole, 8) == 1);
  CHECK(pending_copies({}, 8) == 1);
  const auto copies = [](Range run, std::int64_t leaves) {
    const auto nodes = canonical_nodes(run, leaves);
    return pending_copies(nodes, leaves);
  };
  CHECK(copies({0, 8}, 8) == 1);
  CHECK(copies({1, 8}, 8) == 3);
  CHECK(copies({1, 7}, 8) == 4);
  const Node leaves[]{{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7}};
  CHECK(pending_copies(leaves, 8) == 4);
}

TEST_CASE("a step that wasn't announced takes memory once", "[optimizer][reducer]") {
  HostBackend backend;
  SimulatedGroup group(1);
  Values weight(100, 0.0F);
  Variable variable;
  variable.shape = {100};
  variable.value = {weight.data(), DType::float32, variable.shape};
  const GradientUse use{0};
  const auto optimizer = make_optimizer("sgd");
  optimizer->attach({&variable, 1}, {&use, 1}, group[0], backend);
  const auto step = [&](std::int64_t leaves) {
    optimizer->begin_step({1, {leaves, {{0, leaves}}}});
    for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
      optimizer->begin_pass({0, leaf}, leaf + 1 == leaves);
      for (float& g : optimizer->gradient(0).span<float>()) g = 1;
      optimizer->gradient_ready(0);
    }
    optimizer->apply();
    CHECK(elements(optimizer->reduced_gradient(0)) == std::vector<double>(100, static_cast<double>(leaves)));
    return backend.allocated;
  };
  const std::size_t first = step(1), second = step(7);
  CHECK(second > first);
  CHECK(step(1) == second);
  CHECK(step(7) == second);
  CHECK(step(4) == second);
}
