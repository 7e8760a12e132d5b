#include <catch2/catch.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "optimizer/schedule.hpp"
#include "runtime/error.hpp"
#include "test/optimizer/one_rank.hpp"

using namespace rankine;
using Catch::Matchers::Contains;
using rankine::test::envelope;

namespace {

Schedule schedule(const std::string& class_name, const std::string& config) {
  return make_schedule(nlohmann::json::parse(envelope(class_name, config, "keras.optimizers.schedules")));
}

struct Point {
  std::int64_t step;
  double rate;
};

void check(const Schedule& schedule, std::initializer_list<Point> points) {
  for (const auto& [step, rate] : points) {
    INFO("step " << step);
    CHECK(schedule(step) == Approx(rate).epsilon(2e-7).margin(0));
  }
}

}  // namespace

TEST_CASE("schedules have Keras's values", "[optimizer][schedule]") {  // keras.md I.13
  const std::string decay = R"("initial_learning_rate": 0.1, "decay_steps": 100, "decay_rate": 0.5)";
  check(schedule("ExponentialDecay", decay), {{50, 0.070710681}});
  check(schedule("ExponentialDecay", decay + R"(, "staircase": true)"), {{250, 0.025}});
  check(schedule("PiecewiseConstantDecay", R"("boundaries": [10, 20], "values": [1, 0.5, 0.1])"),
        {{10, 1}, {11, 0.5}, {20, 0.5}, {21, 0.1}});
  const std::string polynomial =
      R"("initial_learning_rate": 0.1, "decay_steps": 100, "end_learning_rate": 0.01)";
  check(schedule("PolynomialDecay", polynomial + R"(, "power": 2)"), {{50, 0.0325}});
  check(schedule("PolynomialDecay", polynomial + R"(, "power": 1.0, "cycle": true)"),
        {{150, 0.0325}, {200, 0.01}, {250, 0.025}});
  const std::string inverse = R"("initial_learning_rate": 0.1, "decay_steps": 10, "decay_rate": 0.5)";
  check(schedule("InverseTimeDecay", inverse), {{25, 0.044444446}});
  check(schedule("InverseTimeDecay", inverse + R"(, "staircase": true)"), {{25, 0.05}});
  check(schedule("CosineDecay", R"("initial_learning_rate": 0.1, "decay_steps": 100, "alpha": 0.1)"),
        {{25, 0.086819813}, {200, 0.01}});
  check(schedule("CosineDecay", R"("initial_learning_rate": 0.0, "decay_steps": 100, "alpha": 0.1,
                                   "warmup_target": 0.1, "warmup_steps": 10)"),
        {{5, 0.05}, {10, 0.1}, {60, 0.055}, {110, 0.01}});
  const std::string restarts = R"("initial_learning_rate": 0.1, "first_decay_steps": 100)";
  check(schedule("CosineDecayRestarts", restarts + R"(, "m_mul": 0.5, "alpha": 0.1)"),
        {{99, 0.010022206}, {100, 0.055}, {200, 0.0325}, {300, 0.0325}, {500, 0.02125}});
  check(schedule("CosineDecayRestarts", restarts + R"(, "t_mul": 1.0, "m_mul": 0.9)"),
        {{150, 0.045}, {250, 0.0405}});
  // The rate of a run on four ranks is that of one: the schedule knows updates only.
  check(schedule("CosineDecay", R"("initial_learning_rate": 0.1, "decay_steps": 100)"), {{40, 0.0654508497}});
}

TEST_CASE("schedules follow Keras step by step", "[optimizer][schedule]") {
  std::ifstream file(GOLDEN_FOLDER "/optimizer/schedules.json");
  const auto tables = nlohmann::json::parse(file);
  CHECK(tables.size() == 16);
  for (const auto& table : tables) {
    INFO(table["config"].dump());
    const Schedule schedule = make_schedule(table["config"]);
    for (std::size_t i = 0; i < table["steps"].size(); ++i) {
      const auto step = table["steps"][i].get<std::int64_t>();
      INFO("step " << step);
      // Where a cosine cancels, the error is relative to what it is subtracted from: 0.1.
      CHECK(schedule(step) == Approx(table["values"][i].get<double>()).epsilon(2e-7).margin(1e-8));
    }
  }
}

TEST_CASE("a schedule that is none is refused", "[optimizer][schedule]") {
  const auto refuses = [](const std::string& class_name, const std::string& config, const std::string& text) {
    INFO(class_name << " " << config);
    CHECK_THROWS_WITH(schedule(class_name, config), Contains(text));
    CHECK_THROWS_AS(schedule(class_name, config), ConfigError);
  };
  const std::string rate = R"("initial_learning_rate": 0.1)";
  refuses("ExponentialDecay", rate + R"(, "decay_steps": 0, "decay_rate": 0.5)",
          "decay_steps = 0, which must be greater than 0");
  refuses("InverseTimeDecay", rate + R"(, "decay_steps": -3, "decay_rate": 0.5)", "decay_steps = -3");
  refuses("PolynomialDecay", rate + R"(, "decay_steps": 0)", "PolynomialDecay has decay_steps");
  refuses("CosineDecay", rate + R"(, "decay_steps": 0)", "CosineDecay has decay_steps");
  refuses("CosineDecayRestarts", rate + R"(, "first_decay_steps": 0)", "first_decay_steps");
  refuses("CosineDecayRestarts", rate + R"(, "first_decay_steps": 5, "t_mul": 0)", "t_mul");
  refuses("CosineDecay", R"("initial_learning_rate": 1, "decay_steps": 5)", "write 1.0, not 1");
  refuses("CosineDecay", R"("decay_steps": 5)", "initial_learning_rate");
  refuses("CosineDecay", rate, "lacks the key 'decay_steps'");
  refuses("CosineDecay", rate + R"(, "decay_steps": "many")", "must be a number");
  refuses("CosineDecay", rate + R"(, "decay_step": 5, "decay_steps": 5)", "did you mean decay_steps");
  refuses("PiecewiseConstantDecay", R"("boundaries": [1, 2], "values": [1.0, 0.5])", "one more than the 2");
  refuses("PiecewiseConstantDecay", R"("boundaries": [3, 2], "values": [1.0, 0.5, 0.1])", "rising");
  refuses("PiecewiseConstantDecay", R"("boundaries": [], "values": [1.0])", "at least one step");
  refuses("PiecewiseConstantDecay", R"("boundaries": 3, "values": [1.0])", "list of numbers");
  refuses("CosineDecy", rate, "did you mean CosineDecay?");
  refuses("WarmupStableDecay", rate, "Supported: ExponentialDecay, PiecewiseConstantDecay");
  CHECK_THROWS_WITH(make_schedule(nlohmann::json::object()), Contains("class_name"));
  CHECK_THROWS_WITH(make_schedule({{"class_name", "CosineDecay"}}), Contains("has no config"));
  CHECK_THROWS_WITH(make_schedule({{"class_name", "CosineDecay"}, {"config", 3}}),
                    Contains("isn't an object"));
  CHECK_THROWS_WITH(
      make_schedule(
          {{"class_name", "Mine"}, {"config", nlohmann::json::object()}, {"registered_name", "my>Mine"}}),
      Contains("custom class `my>Mine`"));
}
