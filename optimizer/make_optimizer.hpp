#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/training/optimizer.hpp"

namespace rankine {

/// Settings of the optimizer that aren't Keras's. None of them changes a bit of the result.
struct OptimizerOptions {
  std::int64_t first_bucket_bytes = std::int64_t{1} << 20;  ///< small: it starts to travel early
  std::int64_t bucket_bytes = std::int64_t{4} << 20;        ///< the others
};

/// An optimizer from Keras's words. `config` is JSON text of a compile config, of its `optimizer` alone, or a
/// plain name ("adam") for Keras's defaults. Throws ConfigError for an optimizer, key or value that isn't
/// supported, naming the near match or what is.
std::unique_ptr<Optimizer> make_optimizer(const std::string& config, const OptimizerOptions& options = {});

}  // namespace rankine
