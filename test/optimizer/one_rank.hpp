#pragma once

#include <memory>
#include <string>
#include <vector>

#include "optimizer/make_optimizer.hpp"
#include "test/fakes/host_backend.hpp"
#include "test/fakes/simulated_group.hpp"

namespace rankine::test {

using Values = std::vector<float>;

/// An optimizer on one rank with one pass a step, fed with given gradients.
class OneRank {
 public:
  struct Weight {
    std::string path;
    Shape shape;
    Values initial;
  };

  OneRank(const std::string& config, std::vector<Weight> weights);
  OneRank(const std::string& config, const Values& initial)
      : OneRank(config, {{"w", {static_cast<std::int64_t>(initial.size())}, initial}}) {}

  /// One gradient a variable.
  UpdateReport step_all(const std::vector<Values>& gradients);
  UpdateReport step(const Values& gradient) { return step_all(std::vector<Values>{gradient}); }
  const Values& weight(std::size_t variable = 0) const { return values_[variable]; }
  Optimizer& optimizer() { return *optimizer_; }
  std::vector<Variable>& variables() { return variables_; }

 private:
  HostBackend backend_;
  SimulatedGroup group_{1};
  std::vector<Values> values_;
  std::vector<Variable> variables_;
  std::unique_ptr<Optimizer> optimizer_;
  std::int64_t step_ = 0;
};

/// A Keras envelope: `config` is what stands between the braces of its config.
std::string envelope(const std::string& class_name, const std::string& config,
                     const std::string& module = "keras.optimizers");

/// All elements of a tensor as doubles.
std::vector<double> elements(const Tensor& tensor);

/// Each element within absolute + relative * |wanted|.
bool close(const Values& got, const std::vector<double>& wanted, double absolute, double relative = 0.0);

}  // namespace rankine::test
