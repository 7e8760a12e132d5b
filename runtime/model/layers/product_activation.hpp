#pragma once

#include <span>

#include "runtime/model/activation.hpp"
#include "runtime/model/layer.hpp"

namespace rankine {

/// What a layer that ends in an activation does around its product: where the product goes, what is kept for
/// backward, and where the gradient of the product is found. Its tensors come after the layer's own ones in
/// `saved` and the scratches.
class ProductActivation {
 public:
  ProductActivation(const Activation& activation, const Shape& product, DType dtype)
      : activation_(activation), product_(product), dtype_(dtype) {}

  /// Adds to a plan. Call it once, after the layer's own tensors.
  void add_to(CallPlan& plan) const;

  /// The tensor that the product is written to, then `finish`.
  Tensor product(const CallContext& call) const;
  void finish(const CallContext& call) const;

  /// Computes and returns the gradient of the product (the output's gradient itself when linear).
  Tensor gradient(const CallContext& call) const;

 private:
  std::size_t scratch_count(bool backward) const;
  /// The product lives in the output's memory.
  bool in_output() const { return activation_.gradient_uses_output() && activation_.works_in_place(); }

  Activation activation_;
  Shape product_;
  DType dtype_;
};

}  // namespace rankine
