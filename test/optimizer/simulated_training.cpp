#include "test/optimizer/simulated_training.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

namespace rankine::test {
namespace {

/// Gradient of a use summed over the leaves under a node, by the definition of the tree.
std::vector<double> node_gradient(Node node, std::int64_t leaves,
                                  const std::function<std::vector<double>(std::int64_t)>& leaf, bool single) {
  if (node.level == 0) return leaf(node.index);
  auto left = node_gradient({node.level - 1, node.index * 2}, leaves, leaf, single);
  const Node right{node.level - 1, node.index * 2 + 1};
  if (leaves_under(right, leaves).size() == 0) return left;
  const auto other = node_gradient(right, leaves, leaf, single);
  for (std::size_t i = 0; i < left.size(); ++i) {
    left[i] = single ? static_cast<float>(left[i]) + static_cast<float>(other[i]) : left[i] + other[i];
  }
  return left;
}

/// Numbers from a counter (splitmix64), cheap to begin anywhere.
struct Mixer {
  std::uint64_t state;
  std::uint64_t operator()() {
    std::uint64_t z = state += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
};

/// Random numbers of very different sizes, so that another order of additions shows.
std::vector<double> leaf_gradient(std::int64_t step, int use, std::int64_t leaf, std::int64_t count,
                                  bool single) {
  Mixer random{static_cast<std::uint64_t>((step * 100 + use) * 100 + leaf)};
  random.state = random();
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double unit = static_cast<double>(random()) * 0x1p-64 - 0.5;
    const double value = std::ldexp(unit, -static_cast<int>(random() % 12));
    values.push_back(single ? static_cast<double>(static_cast<float>(value)) : value);
  }
  return values;
}

void write(const std::vector<double>& values, const Tensor& to) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (to.dtype == DType::float64) {
      to.as<double>()[i] = values[i];
    } else {
      to.as<float>()[i] = static_cast<float>(values[i]);
    }
  }
}

void append(std::string& bits, const Tensor& tensor) {
  bits.append(static_cast<const char*>(tensor.data), tensor.bytes());
}

}  // namespace

Problem mixed_problem(const std::string& config) {
  Problem problem;
  problem.config = config;
  const std::vector<Shape> shapes{{7, 5}, {64}, {3, 11}, {257}, {300}, {1}, {16, 8}, {13}, {4}};
  for (std::size_t v = 0; v < shapes.size(); ++v) {
    Variable variable;
    variable.path = "layer_" + std::to_string(v) + "/kernel";
    variable.ordinal = static_cast<int>(v);
    variable.shape = shapes[v];
    variable.dtype = v == 2 || v == 6 ? DType::float64 : DType::float32;
    variable.trainable = v != 7;  // and 8 has no use
    problem.variables.push_back(variable);
  }
  for (const int v : {6, 0, 5, 4, 3, 0, 2, 1, 6, 0}) problem.uses.push_back({v});
  problem.step_leaves = {13, 13, 5};  // the last batch of an epoch is short
  return problem;
}

SimulatedTraining::SimulatedTraining(const Problem& problem, const Arrangement& arrangement)
    : problem_(problem), arrangement_(arrangement), group_(arrangement.ranks) {
  for (int r = 0; r < arrangement.ranks; ++r) {
    auto rank = std::make_unique<Rank>();
    rank->variables = problem.variables;
    std::size_t bytes = 0;
    for (const auto& variable : rank->variables) {
      bytes += static_cast<std::size_t>(variable.shape.elements()) * sizeof(double);
    }
    rank->weights = rank->backend.allocate(bytes);
    std::byte* at = rank->weights.data();
    for (auto& variable : rank->variables) {
      variable.value = {at, variable.dtype, variable.shape};
      at += static_cast<std::size_t>(variable.shape.elements()) * sizeof(double);
      write(leaf_gradient(0, variable.ordinal, 0, variable.shape.elements(), true), variable.value);
    }
    rank->optimizer = make_optimizer(problem.config, arrangement.options);
    for (const std::int64_t leaves : problem.step_leaves) {
      std::vector<Node> nodes;
      for (const auto& pass : plan(r, leaves).passes) nodes.push_back(pass.node);
      rank->optimizer->expect_passes(nodes, leaves);
    }
    rank->optimizer->attach(rank->variables, problem.uses, group_[r], rank->backend);
    ranks_.push_back(std::move(rank));
  }
}

StepPlan SimulatedTraining::plan(int rank, std::int64_t leaves) const {
  return plan_step(leaves, 1, arrangement_.ranks, rank, arrangement_.accumulate);
}

void SimulatedTraining::step() {
  ++step_;
  for (int rank = 0; rank < group_.size(); ++rank) run_passes(rank);
  for (const auto& rank : ranks_) rank->report = rank->optimizer->apply();
}

void SimulatedTraining::run_passes(int rank) {
  Optimizer& optimizer = *ranks_[static_cast<std::size_t>(rank)]->optimizer;
  const std::int64_t leaves =
      problem_.step_leaves[static_cast<std::size_t>(step_ - 1) % problem_.step_leaves.size()];
  const StepPlan plan = this->plan(rank, leaves);
  optimizer.begin_step({step_, plan.shares});
  const int uses = static_cast<int>(problem_.uses.size());
  for (const PlannedPass& pass : plan.passes) {
    optimizer.begin_pass(pass.node, &pass == &plan.passes.back());
    for (int use = 0; use < uses; ++use) {
      const Tensor gradient = optimizer.gradient(use);
      std::memset(gradient.data, 0xff, gradient.bytes());
    }
    std::vector<int> order(static_cast<std::size_t>(uses));
    std::iota(order.begin(), order.end(), 0);
    if (arrangement_.shuffle_ready) {
      std::mt19937 random(static_cast<unsigned>(rank * 1000 + step_));
      std::shuffle(order.begin(), order.end(), random);
    }
    for (const int use : order) {
      const Tensor gradient = optimizer.gradient(use);
      const bool single = gradient.dtype == DType::float32;
      write(
          node_gradient(
              pass.node, leaves,
              [&](std::int64_t leaf) { return leaf_gradient(step_, use, leaf, gradient.elements(), single); },
              single),
          gradient);
      optimizer.gradient_ready(use);
      optimizer.progress();
    }
  }
}

std::string SimulatedTraining::bits(int r) const {
  const Rank& rank = *ranks_[static_cast<std::size_t>(r)];
  std::string bits;
  for (const auto& variable : rank.variables) {
    append(bits, variable.value);
    const Tensor gradient = rank.optimizer->reduced_gradient(variable.ordinal);
    if (gradient) append(bits, gradient);
  }
  for (const auto& entry : rank.optimizer->state()) append(bits, entry.local);
  const double report[]{static_cast<double>(rank.report.update), rank.report.learning_rate,
                        rank.report.gradient_norm};
  bits.append(reinterpret_cast<const char*>(report), sizeof(report));
  return bits;
}

void SimulatedTraining::resume_from(SimulatedTraining& other) {
  step_ = other.step_;
  for (const auto& rank : ranks_) {
    const Rank& from = *other.ranks_[0];
    std::memcpy(rank->weights.data(), from.weights.data(), rank->weights.bytes());
    const StateDict saved = from.optimizer->state(), own = rank->optimizer->state();
    for (std::size_t i = 0; i < own.size(); ++i) {
      std::memcpy(own[i].local.data, saved[i].local.data, own[i].local.bytes());
    }
    rank->optimizer->state_changed();
  }
}

}  // namespace rankine::test
