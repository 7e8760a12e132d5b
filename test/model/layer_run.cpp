#include "test/model/layer_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "runtime/model/operation.hpp"

using namespace rankine;

Tensor Array::tensor() {
  if (dtype == DType::int32) return {integers.data(), dtype, shape};
  if (dtype == DType::float32) return {singles.data(), dtype, shape};
  return {floats.data(), dtype, shape};
}

std::vector<double> Array::values() const {
  return dtype == DType::float32 ? std::vector<double>(singles.begin(), singles.end()) : floats;
}

Array Array::of(Shape shape, DType dtype, const std::vector<double>& values) {
  Array array;
  array.shape = std::move(shape);
  array.dtype = dtype;
  const auto size = static_cast<std::size_t>(array.shape.elements());
  std::vector<double> all = values;
  if (values.empty())
    all.assign(size, dtype == DType::int32 ? 0.0 : std::numeric_limits<double>::quiet_NaN());
  if (all.size() != size) throw std::logic_error("an array's values don't fit its shape");
  if (dtype == DType::int32) array.integers.assign(all.begin(), all.end());
  if (dtype == DType::float32) array.singles.assign(all.begin(), all.end());
  if (dtype == DType::float64) array.floats = std::move(all);
  return array;
}

Array Array::from_json(const nlohmann::json& value, DType floating) {
  const DType dtype = value["dtype"] == "int32" ? DType::int32 : floating;
  auto values = value["data"].get<std::vector<double>>();
  for (double& v : values) v = static_cast<double>(static_cast<float>(v));
  return of(Shape(value["shape"].get<std::vector<std::int64_t>>()), dtype, values);
}

Array Array::rows(std::int64_t begin, std::int64_t end) const {
  Array part = *this;
  const std::int64_t row = shape.product(1, shape.rank());
  part.shape[0] = end - begin;
  const auto cut = [&](auto& elements) {
    if (elements.empty()) return;
    elements.assign(elements.begin() + begin * row, elements.begin() + end * row);
  };
  cut(part.floats), cut(part.singles), cut(part.integers);
  return part;
}

namespace {

class Recorder final : public VariableBuilder {
 public:
  explicit Recorder(std::vector<DeclaredVariable>& variables) : variables_(variables) {}
  void add(const Group& group, const std::string& name, const Shape& shape, WeightRules, Fans fans,
           bool) override {
    variables_.push_back({group.attribute, group.name, name, shape, fans});
  }

 private:
  std::vector<DeclaredVariable>& variables_;
};

/// Arrays for what a plan asks for, and tensors on them.
struct Memory {
  std::vector<Array> arrays;
  std::vector<Tensor> tensors;
  Memory(const std::vector<TensorSpec>& specs, std::int64_t samples) {
    for (const TensorSpec& spec : specs)
      arrays.push_back(
          Array::of(spec.per_sample ? spec.shape.with_leading(samples) : spec.shape, spec.dtype));
    for (Array& array : arrays) tensors.push_back(array.tensor());
  }
};

}  // namespace

std::unique_ptr<Layer> make_layer(const std::string& class_name, const nlohmann::json& config, DType dtype) {
  for (const LayerKind& kind : layer_kinds()) {
    if (kind.class_name == class_name)
      return kind.make({class_name, config.value("name", "tested"), dtype, true}, config);
  }
  throw std::logic_error("no layer of class " + class_name);
}

std::unique_ptr<Layer> make_operation(const nlohmann::json& envelope, DType dtype) {
  const std::string class_name = envelope["class_name"];
  const LayerKind* kind = find_operation_kind(envelope["module"].get<std::string>(), class_name);
  if (kind == nullptr) throw std::logic_error("no operation of class " + class_name);
  return kind->make({class_name, "tested", dtype, true}, operation_config(envelope, "the operation"));
}

LayerRun::LayerRun(const std::string& class_name, const nlohmann::json& config, DType dtype)
    : layer_(make_layer(class_name, config, dtype)), dtype_(dtype) {}

std::vector<ValueSpec> LayerRun::specs() const {
  std::vector<ValueSpec> specs;
  for (const Array& input : inputs_) {
    const std::vector<std::int64_t>& sizes = input.shape.sizes();
    specs.push_back({Shape(std::vector<std::int64_t>(sizes.begin() + 1, sizes.end())), input.dtype});
  }
  return specs;
}

void LayerRun::set_inputs(std::vector<Array> inputs, bool same_input) {
  inputs_ = std::move(inputs);
  same_input_ = same_input;
  variables_.clear();
  Recorder recorder(variables_);
  layer_->build(specs(), recorder);
}

LayerRun::Result LayerRun::run(Backend& backend, std::int64_t begin, std::int64_t end,
                               const Array& output_gradient) {
  const std::int64_t samples = end - begin;
  const CallPlan plan = layer_->plan(specs(), arguments);
  const ValueSpec output_spec = layer_->output(specs());
  Result result{Array::of(output_spec.shape.with_leading(samples), output_spec.dtype), {}, {}};
  std::vector<Array> inputs;
  std::vector<Tensor> input_tensors, weights;
  for (const Array& input : inputs_) inputs.push_back(input.rows(begin, end));
  for (Array& input : inputs) input_tensors.push_back((same_input_ ? inputs[0] : input).tensor());
  for (Array& weight : weights_) weights.push_back(weight.tensor());
  std::vector<Array> masks;
  std::vector<Tensor> mask_tensors;
  for (const Array& mask : this->masks)
    masks.push_back(mask.integers.empty() ? Array{} : mask.rows(begin, end));
  for (Array& mask : masks) mask_tensors.push_back(mask.integers.empty() ? Tensor{} : mask.tensor());
  Memory saved(plan.saved, samples), forward_scratch(plan.forward_scratch, samples),
      backward_scratch(plan.backward_scratch, samples);

  CallContext call{.backend = backend};
  call.samples = samples;
  call.first_sample = begin;
  call.step = step;
  call.seed = seed;
  call.call = 5;
  call.training = training;
  call.batch = {this->samples(), 1};
  call.arguments = arguments;
  call.inputs = input_tensors;
  call.output = result.output.tensor();
  call.masks = mask_tensors;
  call.variables = weights;
  call.saved = saved.tensors;
  call.scratch = forward_scratch.tensors;
  // One pass is the whole batch.
  std::vector<Array> sum_arrays;
  std::vector<Tensor> sums;
  std::vector<std::int64_t> sizes = plan.forward_sums;
  sizes.insert(sizes.end(), plan.backward_sums.begin(), plan.backward_sums.end());
  for (const std::int64_t size : sizes) sum_arrays.push_back(Array::of({size}, dtype_));
  for (Array& array : sum_arrays) sums.push_back(array.tensor());
  const std::size_t before_forward = plan.forward_sums.size();
  if (training) {
    call.sums = sums;
    for (std::size_t k = 0; k < before_forward; ++k) layer_->add_to_sum(call, k, sums[k]);
  }
  layer_->forward(call);
  if (output_gradient.shape.rank() == 0) return result;

  // What the plan says that backward doesn't read may have been overwritten.
  if (!plan.backward_reads_inputs) {
    for (Array& input : inputs) {
      if (is_floating(input.dtype)) input = Array::of(input.shape, input.dtype);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i)
      input_tensors[i] = (same_input_ ? inputs[0] : inputs[i]).tensor();
  }
  const Array output = result.output;
  if (!plan.backward_reads_output && !plan.output_is_input)
    result.output = Array::of(output.shape, output.dtype);
  call.output = result.output.tensor();
  std::vector<Tensor> input_gradients, weight_gradients;
  for (const Array& input : inputs) result.input_gradients.push_back(Array::of(input.shape, dtype_));
  for (const Array& weight : weights_) result.weight_gradients.push_back(Array::of(weight.shape, dtype_));
  std::vector<bool> wanted(weights_.size(), wants_weight_gradients);
  for (const int idle : plan.idle_variables) {
    const auto i = static_cast<std::size_t>(idle);
    wanted[i] = false;
    const auto elements = static_cast<std::size_t>(weights_[i].shape.elements());
    result.weight_gradients[i] = Array::of(weights_[i].shape, dtype_, std::vector<double>(elements, 0.0));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    input_gradients.push_back(wants_input_gradients && is_floating(inputs[i].dtype)
                                  ? result.input_gradients[i].tensor()
                                  : Tensor{});
  for (std::size_t i = 0; i < wanted.size(); ++i)
    weight_gradients.push_back(wanted[i] ? result.weight_gradients[i].tensor() : Tensor{});
  Array given = output_gradient.rows(begin, end);
  call.scratch = backward_scratch.tensors;
  call.output_gradient = given.tensor();
  call.input_gradients = input_gradients;
  for (std::size_t k = before_forward; k < sums.size(); ++k) layer_->add_to_sum(call, k, sums[k]);
  call.variable_gradients = weight_gradients;
  layer_->backward(call);
  if (given.values() != output_gradient.rows(begin, end).values())
    throw std::logic_error("backward changed the output's gradient");
  result.output = output;
  return result;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!(difference <= largest)) largest = difference;  // NaN stays
    if (std::isnan(difference)) return difference;
  }
  return largest;
}
