#include "optimizer/bucket.hpp"

namespace rankine {
namespace {

constexpr std::int64_t k_line = 64;

}  // namespace

BucketLayout lay_out_buckets(std::span<const UseSize> uses, std::int64_t first_bucket_bytes,
                             std::int64_t bucket_bytes) {
  BucketLayout layout;
  std::int64_t filled = 0;  // bytes in the last bucket
  for (const UseSize& use : uses) {
    const auto size = static_cast<std::int64_t>(size_of(use.dtype));
    const std::int64_t bytes = (use.elements * size + k_line - 1) / k_line * k_line;
    const std::int64_t limit = layout.buckets.size() == 1 ? first_bucket_bytes : bucket_bytes;
    if (layout.buckets.empty() || layout.buckets.back().dtype != use.dtype || filled + bytes > limit) {
      layout.buckets.push_back({use.dtype, layout.bytes, 0, {}});
      filled = 0;
    }
    Bucket& bucket = layout.buckets.back();
    bucket.uses.push_back(static_cast<int>(layout.use_offsets.size()));
    bucket.elements += bytes / size;
    layout.use_offsets.push_back(layout.bytes);
    layout.use_elements.push_back(use.elements);
    layout.use_buckets.push_back(static_cast<int>(layout.buckets.size()) - 1);
    layout.bytes += bytes;
    filled += bytes;
  }
  return layout;
}

}  // namespace rankine
