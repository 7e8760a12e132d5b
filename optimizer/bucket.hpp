#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/dtype.hpp"

namespace rankine {

/// What the gradient of one use takes.
struct UseSize {
  DType dtype = DType::float32;
  std::int64_t elements = 0;
};

/// Gradients that are reduced together: a stretch of the flat gradient memory.
struct Bucket {
  DType dtype = DType::float32;
  std::int64_t offset = 0;    ///< bytes into the flat memory
  std::int64_t elements = 0;  ///< padding included
  std::vector<int> uses;
};

/// Where the gradients of all uses lie in one flat memory: in the order of the uses, each on a cache line of
/// its own, so that kernels write aligned; the gaps are zeros that are reduced along.
struct BucketLayout {
  std::vector<Bucket> buckets;
  std::vector<std::int64_t> use_offsets;   ///< bytes into the flat memory
  std::vector<std::int64_t> use_elements;  ///< without padding
  std::vector<int> use_buckets;
  std::int64_t bytes = 0;
};

/// Fills buckets in the order of `uses`. A bucket takes uses up to its size in bytes, and at least one: a use
/// bigger than a bucket has one to itself. A bucket holds one dtype.
BucketLayout lay_out_buckets(std::span<const UseSize> uses, std::int64_t first_bucket_bytes,
                             std::int64_t bucket_bytes);

}  // namespace rankine
