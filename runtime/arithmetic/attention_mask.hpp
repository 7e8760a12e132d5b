#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/arithmetic/attention_call.hpp"
#include "runtime/arithmetic/attention_kernels.hpp"
#include "runtime/arithmetic/elementwise_kernels.hpp"
#include "runtime/arithmetic/random.hpp"

namespace rankine {

/// Which keys the queries of one sample see, beyond "all" and "up to itself", which the kernels know.
class AttentionMask {
 public:
  AttentionMask(const Attention& call, std::int64_t sample)
      : call_(call),
        queries_(row(call.query_mask, sample, call.query_length)),
        keys_(row(call.key_mask, sample, call.key_length)),
        pairs_(row(call.pair_mask, sample, call.query_length * call.key_length)) {}

  bool hides_keys() const {
    return call_.window > 0 || queries_ != nullptr || keys_ != nullptr || pairs_ != nullptr;
  }

  bool sees(std::int64_t query, std::int64_t key) const {
    const Range range = keys_near(query);
    return key >= range.begin && key < range.end && is_shown(query, key);
  }
  bool sees_something(std::int64_t query) const {
    const Range range = keys_near(query);
    if (!looks_at_keys()) return range.begin < range.end;
    for (std::int64_t key = range.begin; key < range.end; ++key)
      if (is_shown(query, key)) return true;
    return false;
  }

  /// Puts -infinity where a row doesn't see, and equal scores in a row that sees nothing. `first` is the
  /// query of the first row.
  template <class T>
  void hide(const ScoreBlock<T>& block, std::int64_t first) const {
    constexpr T k_hidden = -std::numeric_limits<T>::infinity();
    for (std::int64_t r = 0; r < block.rows; ++r) {
      T* scores = block.scores.data + r * block.scores.row;
      if (!sees_something(first + r)) {
        std::fill_n(scores, block.columns, T(0));
        continue;
      }
      const Range range = keys_near(first + r);
      std::fill(scores, scores + range.begin, k_hidden);
      std::fill(scores + range.end, scores + block.columns, k_hidden);
      for (std::int64_t j = range.begin; looks_at_keys() && j < range.end; ++j)
        if (!is_shown(first + r, j)) scores[j] = k_hidden;
    }
  }
  /// The scores of a row that sees nothing are constants: no gradient.
  template <class T>
  void clear_gradients(const ScoreBlock<T>& block, Rows<T> gradients, std::int64_t first) const {
    for (std::int64_t r = 0; r < block.rows; ++r)
      if (!sees_something(first + r)) std::fill_n(gradients.data + r * gradients.row, block.columns, T(0));
  }

 private:
  static const std::int32_t* row(const void* mask, std::int64_t sample, std::int64_t length) {
    return mask == nullptr ? nullptr : static_cast<const std::int32_t*>(mask) + sample * length;
  }
  bool looks_at_keys() const { return keys_ != nullptr || pairs_ != nullptr; }
  /// Whether the masks of keys and of pairs show a key.
  bool is_shown(std::int64_t query, std::int64_t key) const {
    return (keys_ == nullptr || keys_[key] != 0) &&
           (pairs_ == nullptr || pairs_[query * call_.key_length + key] != 0);
  }
  /// Keys within the window and not behind a causal query; none for a hidden query.
  Range keys_near(std::int64_t query) const {
    Range range{0, call_.key_length};
    if (call_.causal) range.end = std::min(range.end, query + 1);
    if (call_.window > 0) {
      range.begin = std::max<std::int64_t>(0, query - call_.window + 1);
      range.end = std::min(range.end, query + call_.window);
    }
    if (range.end <= range.begin || (queries_ != nullptr && queries_[query] == 0)) return {};
    return range;
  }

  const Attention& call_;
  const std::int32_t *queries_, *keys_, *pairs_;
};

/// Words of random bits that decide over the weights of query t of head h: see Attention::dropout.
inline DropoutRun attention_dropout(const Attention& call, std::int64_t sample, std::int64_t head,
                                    std::int64_t query) {
  constexpr std::int64_t k_block = 4;
  const std::int64_t blocks = (call.key_length + k_block - 1) / k_block;
  DropoutRun run;
  run.key = call.dropout.seed;
  run.first_block = static_cast<std::uint32_t>((head * call.query_length + query) * blocks);
  run.sample = static_cast<std::uint32_t>(call.dropout.first_sample + sample);
  run.step = static_cast<std::uint32_t>(call.dropout.step);
  run.use = random_word(RandomUse::dropout, call.dropout.call);
  run.threshold = static_cast<std::uint32_t>(std::ceil(call.dropout.rate * 0x1p24));
  return run;
}

}  // namespace rankine
