#include "runtime/model/layers/einsum.hpp"

#include <algorithm>
#include <cctype>

#include "runtime/error.hpp"

namespace rankine {
namespace {

[[noreturn]] void refuse_equation(const std::string& owner, const std::string& text, const std::string& why) {
  throw ConfigError(owner + " has the equation '" + text + "', " + why);
}

bool has(const std::string& labels, char label) {
  return labels.find(label) != std::string::npos;
}

/// Takes "..." off the front or the back.
EinsumEquation::Elided take_dots(std::string& term) {
  if (term.starts_with("...")) {
    term.erase(0, 3);
    return EinsumEquation::Elided::left;
  }
  if (term.ends_with("...")) {
    term.erase(term.size() - 3);
    return EinsumEquation::Elided::right;
  }
  return EinsumEquation::Elided::none;
}

bool is_plain(const std::string& term) {
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(term[i])) == 0 || has(term.substr(0, i), term[i]))
      return false;
  }
  return !term.empty();
}

/// The stride that walks through a group of labels in order, when one stride can.
struct Walk {
  bool fits = true;
  bool trivial = true;  ///< one element: any stride does
  std::int64_t stride = 1;
};

class Fit {
 public:
  Fit(const EinsumProduct& product, const std::string& labels) : product_(product), labels_(labels) {
    std::int64_t stride = 1;
    for (std::size_t i = labels.size(); i-- > 0;) {
      strides_[labels[i]] = stride;
      stride *= product.sizes.at(labels[i]);
    }
  }

  EinsumOperand operand(const std::string& batch, const std::string& rows, const std::string& columns,
                        bool may_transpose) const {
    const Walk b = walk(batch), r = walk(rows), c = walk(columns);
    const std::int64_t m = product_.shape(rows).elements(), n = product_.shape(columns).elements();
    EinsumOperand result;
    result.stride = b.trivial ? 0 : b.stride;
    if (b.fits && r.fits && c.fits) {
      result.leading = r.trivial ? std::max<std::int64_t>(n, 1) : r.stride;
      if ((c.trivial || c.stride == 1) && result.leading >= n) return result;
      result.leading = c.trivial ? std::max<std::int64_t>(m, 1) : c.stride;
      result.transposed = true;
      if (may_transpose && (r.trivial || r.stride == 1) && result.leading >= m) return result;
      result.transposed = false;
    }
    for (const char label : batch + rows + columns)
      result.order.push_back(static_cast<int>(labels_.find(label)));
    result.leading = std::max<std::int64_t>(n, 1);
    result.stride = m * n;
    return result;
  }

 private:
  Walk walk(const std::string& group) const {
    Walk walk;
    std::int64_t next = 1;
    for (std::size_t i = group.size(); i-- > 0;) {
      const std::int64_t size = product_.sizes.at(group[i]);
      // A single sample counts as several, so that what is permuted is the same for every batch.
      if (size == 1 && group[i] != product_.input[0]) continue;
      const std::int64_t stride = strides_.at(group[i]);
      if (walk.trivial) {
        walk.trivial = false;
        walk.stride = stride;
      } else if (stride != next) {
        walk.fits = false;
      }
      next = stride * size;
    }
    return walk;
  }

  const EinsumProduct& product_;
  const std::string& labels_;
  std::map<char, std::int64_t> strides_;
};

/// Leaves of several dimensions as one: whole indices of the first one, as many as make up a leaf.
Leaves leaves_of(const Shape& shape) {
  constexpr std::int64_t k_long_enough = 64;
  const std::int64_t trailing = shape.product(1, shape.rank());
  const std::int64_t indices = trailing >= k_long_enough ? 1 : feature_leaf(shape.rank() > 0 ? shape[0] : 1);
  return Leaves::of(shape.elements(), std::max<std::int64_t>(trailing * indices, 1));
}

}  // namespace

EinsumEquation EinsumEquation::parse(const std::string& text, const std::string& owner) {
  const std::size_t comma = text.find(','), arrow = text.find("->");
  EinsumEquation equation;
  if (comma == std::string::npos || arrow == std::string::npos || arrow < comma)
    refuse_equation(owner, text, "which isn't of the form input,kernel->output");
  equation.input = text.substr(0, comma);
  equation.kernel = text.substr(comma + 1, arrow - comma - 1);
  equation.output = text.substr(arrow + 2);
  equation.elided = take_dots(equation.input);
  if (take_dots(equation.output) != equation.elided || !is_plain(equation.input) ||
      !is_plain(equation.kernel) || !is_plain(equation.output))
    refuse_equation(owner, text,
                    "which isn't of the form [X],[Y]->[Z], ...[X],[Y]->...[Z] or [X]...,[Y]->[Z]... with "
                    "letters that occur once in each term");
  for (const char label : equation.kernel) {
    if (!has(equation.input, label) && !has(equation.output, label))
      refuse_equation(owner, text,
                      std::string("whose kernel label ") + label + " is in neither input nor output");
  }
  for (const char label : equation.output) {
    if (!has(equation.input, label) && !has(equation.kernel, label))
      refuse_equation(owner, text,
                      std::string("whose output label ") + label + " is in neither input nor kernel");
  }
  if (equation.elided != Elided::left &&
      (equation.input[0] != equation.output[0] || has(equation.kernel, equation.input[0])))
    refuse_equation(
        owner, text,
        "whose first input label, the batch, must be the first of the output and not in the kernel");
  return equation;
}

EinsumEquation EinsumEquation::expanded(int input_rank, const std::string& owner) const {
  const int count = input_rank - static_cast<int>(input.size());
  if (count < 0 || (count > 0 && elided == Elided::none) || (count == 0 && elided == Elided::left))
    throw ConfigError(owner + " has an equation with " + std::to_string(input.size()) +
                      " input labels but an input of " + std::to_string(input_rank) +
                      " dimensions, the batch included");
  std::string dots;
  for (int i = 0; i < count; ++i) dots.push_back(static_cast<char>(i + 1));
  EinsumEquation result = *this;
  result.elided = Elided::none;
  result.input = elided == Elided::left ? dots + input : input + dots;
  result.output = elided == Elided::left ? dots + output : output + dots;
  return result;
}

Shape EinsumProduct::shape(const std::string& labels) const {
  std::vector<std::int64_t> result;
  for (const char label : labels) result.push_back(sizes.at(label));
  return Shape(std::move(result));
}

EinsumProduct EinsumProduct::of(const EinsumEquation& equation, std::map<char, std::int64_t> sizes) {
  EinsumProduct p;
  p.whole_input = equation.input;
  p.kernel = equation.kernel;
  p.output = equation.output;
  p.sizes = std::move(sizes);
  std::string batch, rows, contracted, columns;
  for (const char label : equation.input) {
    const bool in_output = has(equation.output, label), in_kernel = has(equation.kernel, label);
    if (in_output || in_kernel) p.input.push_back(label);
    if (in_output && !in_kernel) rows.push_back(label);
  }
  for (const char label : p.kernel) {
    const bool in_input = has(equation.input, label), in_output = has(equation.output, label);
    (in_input && in_output ? batch : in_input ? contracted : columns).push_back(label);
  }
  p.x = Fit(p, p.input).operand(batch, rows, contracted, false);
  p.w = Fit(p, p.kernel).operand(batch, contracted, columns, true);
  p.y = Fit(p, p.output).operand(batch, rows, columns, false);
  p.batch = p.shape(batch).elements();
  p.m = p.shape(rows).elements();
  p.k = p.shape(contracted).elements();
  p.n = p.shape(columns).elements();
  p.rows_per_sample = p.shape(rows.substr(1)).elements();
  p.k_leaves = leaves_of(p.shape(contracted));
  p.n_leaves = leaves_of(p.shape(columns));
  return p;
}

}  // namespace rankine
