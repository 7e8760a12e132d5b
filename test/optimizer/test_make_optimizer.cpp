#include <catch2/catch.hpp>

#include "optimizer/make_optimizer.hpp"
#include "runtime/error.hpp"
#include "test/optimizer/one_rank.hpp"

using namespace rankine;
using namespace rankine::test;
using Catch::Matchers::Contains;

namespace {

void refuses(const std::string& config, const std::string& text) {
  INFO(config);
  CHECK_THROWS_WITH(make_optimizer(config), Contains(text));
  CHECK_THROWS_AS(make_optimizer(config), ConfigError);
}

std::vector<std::string> slot_names(const std::string& config) {
  Variable variable;
  variable.shape = {2, 3};
  std::vector<std::string> names;
  for (const auto& slot : make_optimizer(config)->slots(variable)) {
    CHECK(slot.shape == variable.shape);
    names.push_back(slot.name);
  }
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("an optimizer is named in any of Keras's ways", "[optimizer][make]") {
  CHECK(make_optimizer("adam")->name() == "Adam");
  CHECK(make_optimizer("adamw")->name() == "AdamW");
  CHECK(make_optimizer("SGD")->name() == "SGD");
  CHECK(make_optimizer(R"("sgd")")->name() == "SGD");
  CHECK(make_optimizer(envelope("AdamW", ""))->name() == "AdamW");
  CHECK(make_optimizer(R"({"optimizer": "adam", "loss": "mse"})")->name() == "Adam");
  CHECK(make_optimizer(R"({"loss": "mse", "optimizer": )" + envelope("SGD", "") + "}")->name() == "SGD");
}

TEST_CASE("slots are known before anything is allocated", "[optimizer][make]") {
  CHECK(slot_names("sgd").empty());
  CHECK(slot_names(envelope("SGD", R"("momentum": 0.9)")) == Names{"momentum"});
  CHECK(slot_names("adam") == Names{"momentum", "velocity"});
  CHECK(slot_names(envelope("Adam", R"("amsgrad": true)")) == Names{"momentum", "velocity", "velocity_hat"});
  CHECK(slot_names(envelope("SGD", R"("gradient_accumulation_steps": 2)")) == Names{"gradient_accumulator"});
  Variable frozen;
  frozen.trainable = false;
  CHECK(make_optimizer("adam")->slots(frozen).empty());
}

TEST_CASE("an optimizer that isn't supported is refused by name", "[optimizer][make]") {
  for (const char* name : {"RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Lion", "Lamb", "Adafactor",
                           "Ftrl", "Muon", "ScheduleFreeAdamW", "LossScaleOptimizer"}) {
    refuses(envelope(name, ""), std::string(name) + " isn't supported yet; supported: SGD, Adam, AdamW");
  }
  refuses("lion", "Lion isn't supported yet");
  refuses(envelope("Adma", ""), "did you mean Adam?");
  refuses("sdg", "did you mean sgd?");
  refuses("gradient-free", "Supported: SGD, Adam, AdamW");
  refuses(R"({"class_name": "Mine", "config": {}, "registered_name": "pkg>Mine"})",
          "custom class `pkg>Mine`");
}

TEST_CASE("a config that says something else is refused", "[optimizer][make]") {
  refuses(envelope("Adam", R"("bet_1": 0.9)"), "did you mean beta_1?");
  refuses(envelope("SGD", R"("beta_1": 0.9)"), "SGD has a key 'beta_1' that isn't known");
  refuses(envelope("Adam", R"("learning_rate": 1)"), "Keras takes no integers");
  refuses(envelope("Adam", R"("learning_rate": "fast")"), "learning_rate = \"fast\"");
  refuses(envelope("Adam", R"("learning_rate": {"class_name": "CosineDecay", "config": {"decay_steps": 0,
          "initial_learning_rate": 0.1}})"),
          "must be greater than 0");
  refuses(envelope("SGD", R"("momentum": 1)"), "momentum = 1, which must be a float");
  refuses(envelope("SGD", R"("momentum": 1.5)"), "momentum = 1.5, which must be between 0 and 1");
  refuses(envelope("Adam", R"("beta_1": 1.0)"), "beta_1");
  refuses(envelope("Adam", R"("beta_2": -0.1)"), "beta_2");
  refuses(envelope("Adam", R"("epsilon": -1e-7)"), "epsilon");
  refuses(envelope("Adam", R"("amsgrad": 1)"), "amsgrad = 1, which must be true or false");
  refuses(envelope("Adam", R"("name": 3)"), "name = 3");
  refuses(envelope("AdamW", R"("weight_decay": null)"), "weight_decay = null");
  refuses(envelope("Adam", R"("clipnorm": 1.0, "clipvalue": 0.5)"), "clipnorm=1.0, clipvalue=0.5");
  refuses(envelope("Adam", R"("clipnorm": -1.0)"), "clipnorm = -1.0, which must be at least 0");
  refuses(envelope("Adam", R"("global_clipnorm": -1)"), "global_clipnorm");
  refuses(envelope("Adam", R"("clipvalue": -0.5)"), "clipvalue");
  refuses(envelope("Adam", R"("gradient_accumulation_steps": 0)"),
          "gradient_accumulation_steps = 0, which must be at least 2");
  refuses(envelope("Adam", R"("gradient_accumulation_steps": 1)"), "at least 2");
  refuses(envelope("Adam", R"("gradient_accumulation_steps": 2.5)"), "an integer");
  refuses(envelope("Adam", R"("use_ema": true)"), "use_ema, which isn't supported yet");
  refuses(envelope("Adam", R"("loss_scale_factor": 8.0)"), "loss_scale_factor, which isn't supported yet");
  refuses(envelope("Adam", R"("decay": 0.01)"), "decay, which is Keras 2's");
  refuses("", "no optimizer is given");
  refuses("{", "isn't valid JSON");
  refuses(R"({"loss": "mse"})", "the compile config has no optimizer");
  refuses(R"({"optimizer": null})", "the compile config has no optimizer");
  refuses(R"({"optimizer": 3})", "must be a Keras object or a name");
  CHECK_THROWS_WITH(make_optimizer("adam", {0, 1024}), Contains("at least one byte"));
}
