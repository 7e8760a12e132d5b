#include "optimizer/rule.hpp"

#include <algorithm>

#include "optimizer/near_match.hpp"
#include "runtime/error.hpp"

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

}  // namespace

const RuleKind& find_rule(const std::string& class_name, bool any_case) {
  const auto is_it = [&](const char* name) {
    return any_case ? lower_case(name) == lower_case(class_name) : name == class_name;
  };
  std::vector<std::string> supported;
  for (const auto& kind : k_rules) {
    if (is_it(kind.class_name)) return kind;
    supported.emplace_back(kind.class_name);
  }
  for (const char* name : k_not_yet) {
    if (is_it(name)) {
      throw ConfigError(std::string("optimizer ") + name +
                        " isn't supported yet; supported: " + listed(supported));
    }
  }
  std::vector<std::string> all = supported;
  all.insert(all.end(), k_not_yet.begin(), k_not_yet.end());
  const std::string near = near_match(class_name, all);
  throw ConfigError("Keras has no optimizer `" + class_name + "`" +
                    (near.empty() ? "" : "; did you mean " + near + "?") +
                    " Supported: " + listed(supported));
}

}  // namespace rankine
