#include "optimizer/make_optimizer.hpp"

#include <nlohmann/json.hpp>

#include "optimizer/coordinated_optimizer.hpp"
#include "optimizer/keras_object.hpp"
#include "runtime/error.hpp"

namespace rankine {
namespace {

/// The optimizer's part of what make_optimizer takes: an envelope, or a name as a JSON text.
nlohmann::json optimizer_part(const std::string& config) {
  const std::size_t begin = config.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) throw ConfigError("no optimizer is given; name one, such as \"adam\"");
  if (config[begin] != '{' && config[begin] != '"') return config;  // a bare name
  auto parsed = nlohmann::json::parse(config, nullptr, false);
  if (parsed.is_discarded()) throw ConfigError("the optimizer's config isn't valid JSON: " + config);
  if (!parsed.is_object() || parsed.contains("class_name")) return parsed;
  const auto inside = parsed.find("optimizer");
  if (inside == parsed.end() || inside->is_null()) {
    throw ConfigError("the compile config has no optimizer; compile the model with one, or name one");
  }
  return *inside;
}

void read_learning_rate(ConfigReader& config, OptimizerSettings& settings) {
  const auto* rate = config.raw("learning_rate");
  if (rate == nullptr) {
    settings.learning_rate = static_cast<float>(settings.kind->learning_rate);
  } else if (rate->is_object()) {
    settings.schedule = make_schedule(*rate);
  } else if (rate->is_number_float()) {
    settings.learning_rate = rate->get<float>();
  } else {
    refuse_value(config, "learning_rate",
                 "a float (Keras takes no integers: write 1.0, not 1) or a schedule");
  }
}

/// Settings of every optimizer of Keras that aren't supported yet: refused unless they do nothing.
void refuse_not_yet(ConfigReader& config) {
  if (config.get<bool>("use_ema", false))
    config.refuse("has use_ema, which isn't supported yet; set it to false");
  config.ignore({"ema_momentum", "ema_overwrite_frequency"});
  if (config.optional<double>("loss_scale_factor")) {
    config.refuse("has a loss_scale_factor, which isn't supported yet; set it to null");
  }
  if (config.optional<double>("decay")) {
    config.refuse(
        "has decay, which is Keras 2's and which Keras 3 ignores; remove it, or give an InverseTimeDecay as "
        "the "
        "learning_rate");
  }
}

OptimizerSettings read_settings(const RuleKind& kind, const nlohmann::json& json) {
  ConfigReader config(json, kind.class_name);
  OptimizerSettings settings;
  settings.kind = &kind;
  settings.name = config.get<std::string>("name", kind.name);
  read_learning_rate(config, settings);
  settings.weight_decay = config.optional<double>("weight_decay");
  if (kind.weight_decay != 0.0 && !settings.weight_decay) {
    if (json.contains("weight_decay")) refuse_value(config, "weight_decay", "a number");
    settings.weight_decay = kind.weight_decay;
  }
  settings.clip = Clip::from_config(config);
  if (const auto steps = config.optional<std::int64_t>("gradient_accumulation_steps")) {
    if (*steps < 2) refuse_value(config, "gradient_accumulation_steps", "at least 2, or null");
    settings.accumulation_steps = *steps;
  }
  refuse_not_yet(config);
  settings.rule = kind.make(config);
  config.finish();
  return settings;
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const std::string& config, const OptimizerOptions& options) {
  if (options.first_bucket_bytes < 1 || options.bucket_bytes < 1) {
    throw ConfigError("a gradient bucket must have at least one byte");
  }
  const auto part = optimizer_part(config);
  if (part.is_string()) {
    const RuleKind& kind = find_rule(part.get<std::string>(), true);
    return std::make_unique<CoordinatedOptimizer>(read_settings(kind, nlohmann::json::object()), options);
  }
  if (!part.is_object()) throw ConfigError("optimizer must be a Keras object or a name; got " + part.dump());
  const KerasObject envelope = open_envelope(part, "optimizer");
  const RuleKind& kind = find_rule(envelope.class_name);
  return std::make_unique<CoordinatedOptimizer>(read_settings(kind, *envelope.config), options);
}

}  // namespace rankine
