#pragma once

#include <cstdint>

namespace rankine {

/// The order in which an epoch sees the samples: a keyed permutation of [0, samples), equal on every mesh, in
/// O(1) memory (a Feistel network of Philox rounds over the next power of four, walked until it falls
/// inside). A function of (seed, epoch) alone, so a resume needs no state.
class SampleOrder {
 public:
  /// Without `shuffle`: the order of the file in every epoch. Throws DataError when samples < 1.
  SampleOrder(std::int64_t samples, std::uint64_t seed, bool shuffle);
  std::int64_t samples() const { return samples_; }
  /// The sample at `position`, which must lie in [0, samples), of epoch `epoch` (from 1).
  std::int64_t sample(std::int64_t epoch, std::int64_t position) const;

 private:
  std::uint64_t permute(std::uint32_t epoch, std::uint64_t value) const;

  std::int64_t samples_;
  std::uint64_t seed_;
  bool shuffle_;
  int half_bits_ = 0;  ///< the network permutes numbers of 2 * half_bits_ bits
};

}  // namespace rankine
