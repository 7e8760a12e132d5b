#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/arithmetic/leaf.hpp"
#include "runtime/model/layer.hpp"

namespace rankine {

/// One of "ab,bc->ac", "...b,bc->...c" and "ab...,bc->ac...": the equation of one product with a kernel. The
/// first label of input and output is the batch.
struct EinsumEquation {
  std::string input, kernel, output;  ///< labels, "..." left out
  enum class Elided : std::uint8_t { none, left, right } elided = Elided::none;

  /// Throws ConfigError that starts with `owner`.
  static EinsumEquation parse(const std::string& text, const std::string& owner);
  /// Without "...", for inputs of this rank (the batch's dimension included): the labels that stand for the
  /// dots are control characters, so they never meet others.
  EinsumEquation expanded(int input_rank, const std::string& owner) const;
};

/// How the memory of one tensor is read as `batch` matrices [rows, columns].
struct EinsumOperand {
  /// Dimensions of the tensor in the order batch, rows, columns; empty when the memory already lies so that a
  /// leading dimension describes it.
  std::vector<int> order;
  bool transposed = false;  ///< stored as [columns, rows]
  std::int64_t leading = 1, stride = 0;

  bool permuted() const { return !order.empty(); }
};

/// An einsum of one input and one kernel as a (batched) matrix product.
///   batch: labels in all three · rows: in input and output · contracted: in input and kernel · columns: in
///   kernel and output
/// Along labels of the input alone the input is summed first.
struct EinsumProduct {
  std::string whole_input;            ///< labels as the equation has them
  std::string input, kernel, output;  ///< labels of the product; the input's are those not summed first
  std::map<char, std::int64_t> sizes;
  EinsumOperand x, w, y;
  std::int64_t batch = 1, m = 1, k = 1, n = 1;
  std::int64_t rows_per_sample = 1;  ///< of each product
  Leaves k_leaves, n_leaves;

  /// `equation` must be expanded; `sizes` must hold every label. What is permuted doesn't depend on the
  /// number of samples.
  static EinsumProduct of(const EinsumEquation& equation, std::map<char, std::int64_t> sizes);

  Shape shape(const std::string& labels) const;
  bool sums_input() const { return whole_input != input; }
};

}  // namespace rankine
