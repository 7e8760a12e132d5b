#include "test/optimizer/one_rank.hpp"

#include <algorithm>
#include <cmath>

namespace rankine::test {

OneRank::OneRank(const std::string& config, std::vector<Weight> weights)
    : optimizer_(make_optimizer(config)) {
  std::vector<GradientUse> uses;
  values_.reserve(weights.size());
  for (auto& weight : weights) {
    values_.push_back(std::move(weight.initial));
    Variable variable;
    variable.path = weight.path;
    variable.ordinal = static_cast<int>(variables_.size());
    variable.shape = weight.shape;
    variable.value = {values_.back().data(), DType::float32, weight.shape};
    variables_.push_back(variable);
  }
  for (int v = static_cast<int>(variables_.size()) - 1; v >= 0; --v) uses.push_back({v});
  optimizer_->attach(variables_, uses, group_[0], backend_);
}

UpdateReport OneRank::step_all(const std::vector<Values>& gradients) {
  optimizer_->begin_step({++step_, {1, {{0, 1}}}});
  optimizer_->begin_pass({0, 0}, true);
  for (std::size_t use = 0; use < gradients.size(); ++use) {
    const Values& gradient = gradients[gradients.size() - 1 - use];
    std::copy(gradient.begin(), gradient.end(), optimizer_->gradient(static_cast<int>(use)).as<float>());
    optimizer_->gradient_ready(static_cast<int>(use));
  }
  return optimizer_->apply();
}

std::string envelope(const std::string& class_name, const std::string& config, const std::string& module) {
  return R"({"module": ")" + module + R"(", "class_name": ")" + class_name + R"(", "config": {)" + config +
         R"(}, "registered_name": null})";
}

std::vector<double> elements(const Tensor& tensor) {
  const auto read = [&]<class T>() {
    const auto span = tensor.span<T>();
    return std::vector<double>(span.begin(), span.end());
  };
  if (tensor.dtype == DType::int32) return read.operator()<std::int32_t>();
  return tensor.dtype == DType::float64 ? read.operator()<double>() : read.operator()<float>();
}

bool close(const Values& got, const std::vector<double>& wanted, double absolute, double relative) {
  return got.size() == wanted.size() &&
         std::equal(got.begin(), got.end(), wanted.begin(),
                    [&](double g, double w) { return std::abs(g - w) <= absolute + relative * std::abs(w); });
}

}  // namespace rankine::test
