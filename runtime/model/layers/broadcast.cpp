#include "runtime/model/layers/broadcast.hpp"

#include <algorithm>

#include "runtime/model/layers/checks.hpp"
#include "runtime/model/layers/rows.hpp"

namespace rankine {
namespace {

/// Neighbouring dimensions that are all repeated or all copied, as one.
struct Run {
  std::int64_t size;
  std::int64_t from_stride;  ///< 0 when repeated
  std::int64_t to_stride;
};

std::vector<Run> runs_of(const Shape& from, const Shape& to) {
  std::vector<Run> runs;
  std::int64_t from_stride = 1, to_stride = 1;
  for (int d = to.rank() - 1; d >= 0; --d) {
    if (to[d] != 1) {
      const bool repeated = from[d] == 1;
      const bool last_repeated = !runs.empty() && runs.back().from_stride == 0;
      if (!runs.empty() && repeated == last_repeated) {
        runs.back().size *= to[d];
      } else {
        runs.push_back({to[d], repeated ? 0 : from_stride, to_stride});
      }
    }
    from_stride *= from[d];
    to_stride *= to[d];
  }
  return runs;
}

/// Copies along every run of `rest`, and in the innermost loop one block.
void copy_runs(Backend& backend, std::span<const Run> rest, const Run& rows, std::int64_t columns,
               const Tensor& from, std::int64_t from_at, const Tensor& to, std::int64_t to_at) {
  if (rest.empty()) {
    backend.copy_block(to.dtype, rows.size, columns, element(from, from_at), rows.from_stride,
                       element(to, to_at), rows.to_stride);
    return;
  }
  const Run& outer = rest.back();
  for (std::int64_t i = 0; i < outer.size; ++i)
    copy_runs(backend, rest.first(rest.size() - 1), rows, columns, from, from_at + i * outer.from_stride, to,
              to_at + i * outer.to_stride);
}

}  // namespace

void broadcast(Backend& backend, const Tensor& from, const Tensor& to) {
  std::vector<Run> runs = runs_of(from.shape, to.shape);
  if (to.elements() == 0) return;
  std::int64_t columns = 1;
  if (!runs.empty() && runs.front().from_stride == 1) {
    columns = runs.front().size;
    runs.erase(runs.begin());
  }
  // The longest loop goes into the backend, so that there are few calls.
  Run rows{1, columns, columns};
  const auto longest =
      std::max_element(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.size < b.size; });
  if (longest != runs.end()) {
    rows = *longest;
    runs.erase(longest);
  }
  copy_runs(backend, runs, rows, columns, from, 0, to, 0);
}

std::vector<BroadcastSum::Step> BroadcastSum::steps() const {
  std::vector<Step> steps;
  Shape now = from_;
  for (int end = now.rank(); end > 0; --end) {
    if (now[end - 1] == to_[end - 1]) continue;
    int begin = end;
    while (begin > 0 && to_[begin - 1] == 1) --begin;
    steps.push_back({now.product(0, begin), now.product(begin, end), now.product(end, now.rank())});
    for (int d = begin; d < end; ++d) now[d] = 1;
    end = begin + 1;
  }
  return steps;
}

std::vector<std::int64_t> BroadcastSum::between() const {
  std::vector<std::int64_t> elements;
  for (const Step& step : steps()) elements.push_back(step.outer * step.inner);
  if (!elements.empty()) elements.pop_back();
  return elements;
}

std::int64_t BroadcastSum::ones() const {
  std::int64_t most = 0;
  for (const Step& step : steps()) most = std::max(most, step.summed);
  return most;
}

void BroadcastSum::run(Backend& backend, const Tensor& from, const Tensor& to, std::int64_t leading,
                       std::span<const Tensor> between, const Tensor& ones) const {
  backend.fill(ones, 1.0);
  const std::vector<Step> steps = this->steps();
  const void* source = from.data;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const std::int64_t outer = leading * step.outer;
    void* target = i + 1 == steps.size() ? to.data : between[i].data;
    Gemm sum{.dtype = to.dtype, .k = step.summed, .c = target};
    sum.k_leaves = Leaves::of(step.summed, feature_leaf(step.summed));
    if (step.inner == 1) {
      sum.m = outer, sum.n = 1;
      sum.a = source, sum.lda = step.summed;
      sum.b = ones.data, sum.ldb = 1, sum.ldc = 1;
    } else {
      sum.m = 1, sum.n = step.inner, sum.batch = outer;
      sum.a = ones.data, sum.lda = step.summed;
      sum.b = source, sum.ldb = step.inner, sum.stride_b = step.summed * step.inner;
      sum.ldc = step.inner, sum.stride_c = step.inner;
    }
    backend.gemm(sum);
    source = target;
  }
}

ValueSpec broadcast_output(const LayerCommon& common, std::span<const ValueSpec> inputs) {
  if (inputs.empty()) refuse_layer(common, "is called without inputs");
  ValueSpec result = inputs[0];
  for (const ValueSpec& input : inputs) {
    expect_dtype(common, input);
    bool fits = input.shape.rank() == result.shape.rank();
    for (int d = 0; fits && d < input.shape.rank(); ++d) {
      fits = input.shape[d] == result.shape[d] || input.shape[d] == 1 || result.shape[d] == 1;
      if (result.shape[d] == 1) result.shape[d] = input.shape[d];
    }
    if (!fits)
      refuse_layer(common, "can't combine samples of shapes " + inputs[0].shape.to_string() + " and " +
                               input.shape.to_string() +
                               "; sizes must be equal or 1, and the number of dimensions equal");
  }
  return result;
}

std::vector<TensorSpec> broadcast_sum_scratch(const ValueSpec& output, std::span<const ValueSpec> inputs) {
  std::int64_t ones = 0;
  std::vector<std::int64_t> between;
  for (const ValueSpec& input : inputs) {
    const BroadcastSum sum(output.shape, input.shape);
    const std::vector<std::int64_t> elements = sum.between();
    between.resize(std::max(between.size(), elements.size()));
    for (std::size_t i = 0; i < elements.size(); ++i) between[i] = std::max(between[i], elements[i]);
    ones = std::max(ones, sum.ones());
  }
  std::vector<TensorSpec> scratch = {{{ones}, output.dtype, false}};
  for (const std::int64_t elements : between) scratch.push_back({{elements}, output.dtype, true});
  return scratch;
}

void sum_back(const CallContext& call, const Tensor& from, const Tensor& to,
              std::span<const Tensor> scratch) {
  const BroadcastSum sum(sample_shape(from), sample_shape(to));
  if (!sum.is_nothing()) {
    sum.run(call.backend, from, to, call.samples, scratch.subspan(1), scratch[0]);
  } else if (from.data != to.data) {
    call.backend.copy(from, to);
  }
}

}  // namespace rankine
