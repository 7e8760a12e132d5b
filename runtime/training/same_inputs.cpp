#include "runtime/training/same_inputs.hpp"

#include <cstring>

#include "runtime/error.hpp"
#include "runtime/mesh/agree.hpp"

namespace rankine {
namespace {

/// A fingerprint of bytes: enough to tell files apart that were meant to be the same.
class Fingerprint {
 public:
  void add(const Tensor& tensor) {
    const auto* bytes = static_cast<const unsigned char*>(tensor.data);
    for (std::size_t at = 0; at < tensor.bytes(); at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + at, std::min(sizeof(word), tensor.bytes() - at));
      value_ = (value_ ^ word) * 0x9e3779b97f4a7c15u;
      value_ ^= value_ >> 29;
    }
  }
  std::string text() const { return std::to_string(value_); }

 private:
  std::uint64_t value_ = 0;
};

std::string fingerprint_of(const Model& model) {
  Fingerprint print;
  for (const Variable& variable : model.variables()) print.add(variable.value);
  return print.text();
}

std::string fingerprint_of(Dataset& dataset) {
  const std::int64_t indices[] = {0, dataset.samples() / 2, dataset.samples() - 1};
  std::vector<std::vector<std::byte>> memory;
  std::vector<Tensor> tensors;
  for (const Field& field : fields_of(dataset)) {
    Tensor tensor{nullptr, field.spec.dtype, field.spec.shape.with_leading(3)};
    tensor.data = memory.emplace_back(tensor.bytes()).data();
    tensors.push_back(tensor);
  }
  dataset.read(indices, tensors);
  Fingerprint print;
  for (const Tensor& tensor : tensors) print.add(tensor);
  return std::to_string(dataset.samples()) + " samples, " + print.text();
}

void check_same(Communicator& ranks, const std::string& what, const std::string& mine) {
  const std::vector<std::string> all = ranks.all_gather_text(mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw ConfigError(what + " of " + ranks.member(static_cast<int>(rank)) + " and of " + ranks.member(0) +
                      " differ, though their names are the same: all ranks must see the same files");
  }
}

}  // namespace

void check_same_inputs(Communicator& ranks, const Model& model, std::span<Dataset* const> datasets) {
  if (ranks.size() == 1) return;
  check_same(ranks, "the weights", fingerprint_of(model));
  for (Dataset* dataset : datasets) {
    if (dataset == nullptr) continue;
    std::string print;
    agree(ranks, [&] { print = fingerprint_of(*dataset); });
    check_same(ranks, "the data", print);
  }
}

}  // namespace rankine
