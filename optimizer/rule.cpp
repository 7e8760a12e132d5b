#include "optimizer/rule.hpp"

#include <algorithm>

#include "optimizer/keras_object.hpp"
#include "runtime/error.hpp"
#include "runtime/model/known_words.hpp"

namespace rankine {
namespace {

constexpr std::array k_rules{
    RuleKind{"SGD", "sgd", 0.01, 0.0, make_sgd},
    RuleKind{"Adam", "adam", 0.001, 0.0, make_adam},
    RuleKind{"AdamW", "adam_w", 0.001, 0.004, make_adam},
};

/// Keras's others, so that they aren't taken for spelling mistakes.
constexpr std::array k_not_yet{"RMSprop",
                               "Adagrad",
                               "Adadelta",
                               "Adamax",
                               "Nadam",
                               "Lion",
                               "Lamb",
                               "Adafactor",
                               "Ftrl",
                               "Muon",
                               "ScheduleFreeAdamW",
                               "LossScaleOptimizer",
                               "MultiOptimizer"};

/// Python's str.lower, with which Keras looks up plain names.
std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace

const RuleKind& find_rule(const std::string& class_name, bool any_case) {
  const auto spelled = [&](const std::string& name) { return any_case ? lower_case(name) : name; };
  const std::string wanted = spelled(class_name);
  std::vector<std::string> supported, known;
  for (const auto& kind : k_rules) {
    if (spelled(kind.class_name) == wanted) return kind;
    supported.emplace_back(kind.class_name);
    known.push_back(spelled(kind.class_name));
  }
  for (const char* name : k_not_yet) {
    if (spelled(name) == wanted) {
      throw ConfigError(std::string("optimizer ") + name +
                        " isn't supported yet; supported: " + listed(supported));
    }
    known.push_back(spelled(name));
  }
  throw ConfigError("Keras has no optimizer `" + class_name + "`" + did_you_mean(wanted, known) +
                    " Supported: " + listed(supported));
}

}  // namespace rankine
