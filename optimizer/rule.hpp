#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/dtype.hpp"
#include "runtime/model/config_reader.hpp"

namespace rankine {

/// One kind of state that a rule keeps for every variable, of the variable's shape and dtype.
struct SlotKind {
  std::string name;      ///< Keras's: "momentum"
  int group = 0;         ///< kinds of one group are interleaved over the variables; groups follow one another
  double initial = 0.0;  ///< what every element starts from
};

/// What an update is a function of besides the elements.
struct UpdateScalars {
  float learning_rate = 0.0F;
  std::int64_t t = 1;  ///< updates, this one included
};

inline constexpr std::size_t k_max_slots = 4;

/// A run of elements of one variable: what the rule reads and writes. `slots` in the order of Rule::slots.
struct Elements {
  DType dtype = DType::float32;
  std::int64_t count = 0;
  const void* gradient = nullptr;
  void* weight = nullptr;
  std::array<void*, k_max_slots> slots{};

  template <class T>
  const T* gradient_as() const {
    return static_cast<const T*>(gradient);
  }
  template <class T>
  T* weight_as() const {
    return static_cast<T*>(weight);
  }
  template <class T>
  T* slot_as(std::size_t i) const {
    return static_cast<T*>(slots[i]);
  }
};

/// How weights follow from gradients: one optimizer class of Keras, its formula word for word, in the
/// variable's dtype with scalars rounded to it where Keras rounds them. Only + - * / sqrt on elements, so the
/// result depends neither on the instruction set nor on how the elements are cut into runs.
class Rule {
 public:
  virtual ~Rule() = default;
  virtual std::vector<SlotKind> slots() const = 0;
  /// Takes what all elements of an update share. Comes before the update's first `update`.
  virtual void begin_update(const UpdateScalars& scalars) = 0;
  virtual void update(const Elements& elements) const = 0;
};

/// A row of the table of rules.
struct RuleKind {
  const char* class_name;                               ///< Keras's: "AdamW"
  const char* name;                                     ///< what Keras calls an instance by default: "adam_w"
  double learning_rate;                                 ///< default
  double weight_decay;                                  ///< default; 0 means none
  std::unique_ptr<Rule> (*make)(ConfigReader& config);  ///< reads the rule's own keys
};

/// The row of a class name; with `any_case` also as Keras's string form has it ("adamw"). Throws ConfigError
/// saying whether Keras has such an optimizer, the near match, and what is supported.
const RuleKind& find_rule(const std::string& class_name, bool any_case = false);

// One a file.
std::unique_ptr<Rule> make_sgd(ConfigReader& config);
std::unique_ptr<Rule> make_adam(ConfigReader& config);

/// Calls f<T>() for the floating type that a dtype names.
template <class F>
void with_floating(DType dtype, F&& f) {
  if (dtype == DType::float64) {
    f.template operator()<double>();
  } else {
    f.template operator()<float>();
  }
}

}  // namespace rankine
