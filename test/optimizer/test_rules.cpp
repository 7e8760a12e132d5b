#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "test/optimizer/one_rank.hpp"

using namespace rankine;
using namespace rankine::test;

namespace {

// keras.md I: three steps with these gradients from these weights.
const Values k_weight{1, -2, 3, 0.5F};
const Values k_gradients[]{{0.1F, -0.2F, 0.3F, -0.4F}, {0.2F, 0.1F, -0.3F, 0.05F}, {-0.1F, 0.4F, 0, 0.3F}};

Values after(int steps, const std::string& class_name, const std::string& config) {
  OneRank run(envelope(class_name, R"("learning_rate": 0.1)" + (config.empty() ? "" : ", " + config)),
              k_weight);
  for (int i = 0; i < steps; ++i) run.step(k_gradients[i]);
  return run.weight();
}

bool near(const Values& got, const std::vector<double>& wanted) {
  return close(got, wanted, 2e-6);
}

}  // namespace

TEST_CASE("SGD has Keras's weights", "[optimizer][rule]") {  // I.1
  CHECK(near(after(3, "SGD", ""), {0.98000002, -2.03, 3.0, 0.505}));
  CHECK(near(after(3, "SGD", R"("momentum": 0.9)"), {0.94490004, -2.0048001, 2.9757001, 0.56890005}));
  CHECK(near(after(3, "SGD", R"("momentum": 0.9, "nesterov": true)"),
             {0.93040997, -2.0343201, 2.9781301, 0.56700999}));
  CHECK(near(after(3, "SGD", R"("weight_decay": 0.1)"), {0.95069802, -1.970896, 2.9111938, 0.48940352}));
}

TEST_CASE("Adam and AdamW have Keras's weights", "[optimizer][rule]") {  // I.2, I.3
  CHECK(near(after(1, "Adam", ""), {0.90000379, -1.9000022, 2.9000018, 0.59999853}));
  CHECK(near(after(3, "Adam", ""), {0.76147968, -1.919102, 2.9093332, 0.65457964}));
  CHECK(after(3, "Adam", R"("amsgrad": true)")[2] == Approx(2.9093313).margin(2e-7));
  CHECK(near(after(1, "AdamW", R"("weight_decay": 0.1)"), {0.8900038, -1.8800023, 2.8700018, 0.59499854}));
  CHECK(near(after(3, "AdamW", R"("weight_decay": 0.1)"), {0.73473376, -1.8619562, 2.8221674, 0.63716668}));
}

TEST_CASE("clipping has Keras's weights", "[optimizer][clip]") {  // I.9
  CHECK(near(after(1, "SGD", R"("clipnorm": 0.2)"), {0.9963485, -1.992697, 2.9890456, 0.51460594}));
  CHECK(near(after(3, "SGD", R"("clipvalue": 0.15)"), {0.985, -2.01, 3.0, 0.495}));
  const auto two = [](const std::string& clip) {
    return OneRank(envelope("SGD", R"("learning_rate": 1.0, )" + clip),
                   {{"a", {2}, {3, 0}}, {"b", {1}, {0}}});
  };
  OneRank global = two(R"("global_clipnorm": 1.0)");
  CHECK(global.step_all({{3, 0}, {4}}).gradient_norm == 5.0);  // before clipping
  CHECK(near(global.weight(0), {2.4, 0}));
  CHECK(near(global.weight(1), {-0.8}));
  OneRank each = two(R"("clipnorm": 1)");
  each.step_all({{3, 0}, {4}});
  CHECK(near(each.weight(0), {2, 0}));
  CHECK(near(each.weight(1), {-1}));
}

TEST_CASE("clipping leaves small and zero gradients alone", "[optimizer][clip]") {
  for (const char* clip : {R"("clipnorm": 10.0)", R"("global_clipnorm": 10.0)", R"("clipvalue": 10.0)"}) {
    INFO(clip);
    CHECK(near(after(3, "SGD", clip), {0.98000002, -2.03, 3.0, 0.505}));
    OneRank still(envelope("SGD", clip), k_weight);
    CHECK(still.step(Values(4, 0.0F)).gradient_norm == 0.0);
    CHECK(still.weight() == k_weight);
  }
}

TEST_CASE("accumulation equals the big batch", "[optimizer][accumulation]") {  // I.11, HAND-5
  const std::string three = R"("gradient_accumulation_steps": 3)";
  CHECK(after(2, "SGD", three) == k_weight);
  CHECK(near(after(3, "SGD", three), {0.99333334, -2.01, 3.0, 0.50166667}));
  CHECK(near(after(3, "Adam", three), {0.9000054, -2.0999961, 3.0, 0.59998035}));

  const auto two_windows = [](const std::string& class_name) {
    OneRank run(envelope(class_name, R"("learning_rate": 0.1, "weight_decay": 0.01, "epsilon": 1e-7,
                                        "gradient_accumulation_steps": 3)"),
                Values{1.0F});
    for (const float gradient : {0.3F, 0.6F, 0.0F, -0.2F, 0.1F, 0.4F}) run.step(Values{gradient});
    return run.weight()[0];
  };
  CHECK(two_windows("AdamW") == Approx(0.810997).margin(1e-6));
  OneRank sgd(envelope("SGD", R"("learning_rate": 0.1, "weight_decay": 0.01, )" + three), Values{1.0F});
  for (const float gradient : {0.3F, 0.6F, 0.0F, -0.2F, 0.1F, 0.4F}) sgd.step(Values{gradient});
  CHECK(sgd.weight()[0] == Approx(0.958031).margin(1e-6));
}

TEST_CASE("the counters are Keras's", "[optimizer][accumulation]") {  // I.11
  const std::string piecewise =
      envelope("PiecewiseConstantDecay", R"("boundaries": [1, 2], "values": [1.0, 0.1, 0.01])",
               "keras.optimizers.schedules");
  OneRank run(envelope("SGD", R"("gradient_accumulation_steps": 3, "learning_rate": )" + piecewise),
              k_weight);
  const double rates[]{1.0, 1.0, 0.1};  // the schedule sees every batch
  for (int i = 0; i < 3; ++i) {
    const UpdateReport report = run.step(k_gradients[i]);
    CHECK(report.learning_rate == Approx(rates[i]));
    CHECK(report.update == (i == 2 ? 1 : 0));
  }
  CHECK(near(run.weight(), {0.99333334, -2.01, 3.0, 0.50166667}));
  CHECK(elements(run.optimizer().state()[0].local) == std::vector<double>{3});
}

TEST_CASE("epsilon stands outside the root, uncorrected", "[optimizer][rule]") {
  for (const double g : {1e-8, 1e-3}) {
    OneRank run(envelope("Adam", R"("learning_rate": 0.1)"), Values{0.0F});
    double m = 0, v = 0, w = 0;
    for (int t = 1; t <= 3; ++t) {
      run.step(Values{static_cast<float>(g)});
      m += (g - m) * 0.1;
      v += (g * g - v) * 0.001;
      w -= 0.1 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t)) * m / (std::sqrt(v) + 1e-7);
    }
    CHECK(run.weight()[0] == Approx(w).epsilon(2e-5));
  }
}

TEST_CASE("an element's update doesn't depend on its place", "[optimizer][rule]") {
  constexpr std::size_t k_pattern = 97, k_many = 20011;  // several blocks, the last one short
  const auto repeated = [](std::size_t count, int salt) {
    Values values;
    for (std::size_t i = 0; i < count; ++i) {
      values.push_back(std::sin(static_cast<float>(i % k_pattern) + static_cast<float>(salt)));
    }
    return values;
  };
  for (const char* class_name : {"SGD", "Adam", "AdamW"}) {
    const std::string config = envelope(
        class_name, R"("learning_rate": 0.1, "clipvalue": 0.4, "weight_decay": 0.1)" +
                        std::string(class_name[0] == 'S' ? R"(, "momentum": 0.5)" : R"(, "amsgrad": true)"));
    OneRank few(config, repeated(k_pattern, 0)), many(config, repeated(k_many, 0));
    for (int step = 1; step <= 3; ++step) {
      few.step(repeated(k_pattern, step));
      many.step(repeated(k_many, step));
    }
    bool equal = true;
    for (std::size_t i = 0; i < k_many; ++i) equal = equal && many.weight()[i] == few.weight()[i % k_pattern];
    CHECK(equal);
  }
}

TEST_CASE("optimizers follow Keras step by step", "[optimizer][rule]") {
  std::ifstream file(GOLDEN_FOLDER "/optimizer/optimizers.json");
  const auto cases = nlohmann::json::parse(file);
  CHECK(cases.size() == 19);
  for (const auto& golden : cases) {
    INFO(golden["name"].get<std::string>());
    std::vector<OneRank::Weight> weights;
    for (std::size_t v = 0; v < golden["paths"].size(); ++v) {
      weights.push_back({golden["paths"][v], Shape(golden["shapes"][v].get<std::vector<std::int64_t>>()),
                         golden["initial"][v].get<Values>()});
    }
    OneRank run(golden["config"].dump(), weights);
    for (std::size_t step = 0; step < golden["gradients"].size(); ++step) {
      const auto report = run.step_all(golden["gradients"][step].get<std::vector<Values>>());
      CHECK(report.learning_rate == Approx(golden["learning_rate"][step].get<double>()).epsilon(2e-7));
      for (std::size_t v = 0; v < weights.size(); ++v) {
        CHECK(close(run.weight(v), golden["weights"][step][v].get<std::vector<double>>(), 4e-7, 4e-7));
      }
    }
    const StateDict state = run.optimizer().state();
    REQUIRE(state.size() == golden["state"].size());
    for (std::size_t i = 0; i < state.size(); ++i) {
      const auto& wanted = golden["state"][i];
      CHECK(state[i].structural_path == "optimizer/vars/" + std::to_string(i));
      CHECK(state[i].path == wanted["path"].get<std::string>());
      CHECK(state[i].global_shape.sizes() == wanted["shape"].get<std::vector<std::int64_t>>());
      const auto values = elements(state[i].local);
      CHECK(close(Values(values.begin(), values.end()), wanted["values"].get<std::vector<double>>(), 2e-7,
                  4e-7));
    }
  }
}
