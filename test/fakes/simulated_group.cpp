#include "test/fakes/simulated_group.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace rankine::test {
namespace {

template <class T>
std::vector<T> tree_sum(const SimulatedSum& sum) {
  const auto n = static_cast<std::size_t>(sum.count);
  NodeStack<std::vector<T>> stack(sum.shares.leaves);
  for (std::size_t rank = 0; rank < sum.parts.size(); ++rank) {
    std::size_t i = 0;
    for (const Node node : canonical_nodes(sum.shares.runs[rank], sum.shares.leaves)) {
      const T* values = static_cast<const T*>(sum.parts[rank].nodes.at(i++));
      stack.push(node, std::vector<T>(values, values + n),
                 [](std::vector<T>& left, const std::vector<T>& right) {
                   for (std::size_t e = 0; e < left.size(); ++e) left[e] = left[e] + right[e];
                 });
    }
  }
  return stack.entries().at(0).value;
}

template <class T>
void run_as(const SimulatedSum& sum) {
  const auto total = tree_sum<T>(sum);
  const std::size_t bytes = total.size() * sizeof(T);
  for (const auto& part : sum.parts) {
    for (void* node : part.nodes) std::memset(node, 0xff, bytes);
  }
  for (const auto& part : sum.parts) std::memcpy(part.result, total.data(), bytes);
}

class SimulatedWork final : public Work {
 public:
  SimulatedWork(std::shared_ptr<SimulatedSum> sum, int ranks, std::uint64_t sequence)
      : sum_(std::move(sum)), ranks_(ranks), sequence_(sequence) {}
  bool done() override {
    if (sum_->arrived == ranks_ && !sum_->done) sum_->run();
    return sum_->done;
  }
  void wait() override {
    if (!done()) throw std::logic_error("would wait for ever: not all ranks have entered " + sum_->call);
  }
  std::uint64_t sequence() const override { return sequence_; }

 private:
  std::shared_ptr<SimulatedSum> sum_;
  int ranks_;
  std::uint64_t sequence_;
};

}  // namespace

void SimulatedSum::run() {
  dtype == DType::float64 ? run_as<double>(*this) : run_as<float>(*this);
  done = true;
}

class SimulatedGroup::Member final : public Communicator {
 public:
  Member(SimulatedGroup& group, int rank) : group_(group), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return group_.size(); }
  const std::string& name() const override { return name_; }
  std::string member(int rank) const override { return "simulated rank " + std::to_string(rank); }

  WorkHandle tree_all_reduce(DType dtype, const TreeShares& shares, std::span<void* const> nodes,
                             std::int64_t count, void* result) override {
    const std::string call = "tree_all_reduce of " + std::to_string(count) + " " +
                             (dtype == DType::float64 ? "float64" : "float32");
    if (entered_ == group_.sums_.size()) {
      auto sum = std::make_shared<SimulatedSum>();
      *sum = {call, dtype, shares, count, std::vector<SimulatedSum::Part>(group_.members_.size()), 0, false};
      group_.sums_.push_back(std::move(sum));
    }
    const auto& sum = group_.sums_[entered_++];
    if (sum->call != call || !(sum->shares == shares)) {
      throw std::logic_error("rank " + std::to_string(rank_) + " enters " + call + ", others " + sum->call);
    }
    sum->parts[static_cast<std::size_t>(rank_)] = {{nodes.begin(), nodes.end()}, result};
    ++sum->arrived;
    return std::make_unique<SimulatedWork>(sum, size(), entered_);
  }

  WorkHandle tree_reduce_scatter(DType, const TreeShares&, std::span<void* const>, std::int64_t, void*,
                                 std::span<const Range>) override {
    refuse();
  }
  WorkHandle all_gather(DType, void*, std::span<const Range>) override { refuse(); }
  WorkHandle all_reduce(std::span<std::int64_t>, ReduceOp) override { refuse(); }
  WorkHandle all_reduce(std::span<double>, ReduceOp) override { refuse(); }
  WorkHandle broadcast(void*, std::size_t, int) override { refuse(); }
  void barrier() override { refuse(); }
  std::unique_ptr<Communicator> split(int, int, const std::string&) override { refuse(); }
  std::vector<std::string> all_gather_text(const std::string&) override { refuse(); }
  void set_deadline(std::chrono::milliseconds) override {}

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("a simulated group only sums in trees"); }

  SimulatedGroup& group_;
  int rank_;
  std::size_t entered_ = 0;
  std::string name_ = "simulated";
};

SimulatedGroup::SimulatedGroup(int ranks) {
  for (int rank = 0; rank < ranks; ++rank) members_.push_back(std::make_unique<Member>(*this, rank));
}

SimulatedGroup::~SimulatedGroup() = default;

Communicator& SimulatedGroup::operator[](int rank) {
  return *members_[static_cast<std::size_t>(rank)];
}

}  // namespace rankine::test
