#pragma once

#include <cstdint>

#include "runtime/model/build.hpp"

namespace rankine {

/// Sizes of a small decoder-only transformer.
struct GptShape {
  std::int64_t vocabulary = 96;
  std::int64_t length = 128;  ///< tokens a sample
  std::int64_t width = 128;
  std::int64_t blocks = 3;
  std::int64_t heads = 4;
  double dropout = 0.0;
};

/// Inputs "tokens" and "positions" (int32, `length` each); output: logits of the next token at every place.
Model make_gpt(const GptShape& shape);

}  // namespace rankine
