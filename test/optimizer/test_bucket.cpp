#include <catch2/catch.hpp>

#include "optimizer/bucket.hpp"

using namespace rankine;

namespace {

/// Uses of each bucket.
std::vector<std::vector<int>> uses_of(const BucketLayout& layout) {
  std::vector<std::vector<int>> uses;
  for (const auto& bucket : layout.buckets) uses.push_back(bucket.uses);
  return uses;
}

std::vector<UseSize> floats(std::initializer_list<std::int64_t> elements) {
  std::vector<UseSize> sizes;
  for (const auto n : elements) sizes.push_back({DType::float32, n});
  return sizes;
}

using Uses = std::vector<std::vector<int>>;

}  // namespace

TEST_CASE("buckets fill in the order of uses", "[optimizer][bucket]") {
  // 256 floats are 1 KiB. The first bucket is small.
  CHECK(uses_of(lay_out_buckets(floats({128, 128, 256, 256, 256}), 1024, 2048)) == Uses{{0, 1}, {2, 3}, {4}});
  CHECK(uses_of(lay_out_buckets(floats({128, 128, 256, 256, 256}), 1 << 20, 1 << 20)) ==
        Uses{{0, 1, 2, 3, 4}});
  CHECK(uses_of(lay_out_buckets(floats({10, 10, 10}), 1, 1)) == Uses{{0}, {1}, {2}});
  CHECK(lay_out_buckets({}, 1024, 1024).buckets.empty());
}

TEST_CASE("a use about as big as a bucket fits or has its own", "[optimizer][bucket]") {
  for (const std::int64_t n : {255, 256, 257}) {
    INFO(n << " elements");
    const auto layout = lay_out_buckets(floats({n, 16, n, 600, 16}), 1024, 1024);
    CHECK(uses_of(layout) == Uses{{0}, {1}, {2}, {3}, {4}});
    CHECK(layout.buckets[2].elements >= n);
  }
  CHECK(uses_of(lay_out_buckets(floats({240, 16, 256, 257, 16}), 1024, 1024)) == Uses{{0, 1}, {2}, {3}, {4}});
}

TEST_CASE("uses lie on cache lines and don't overlap", "[optimizer][bucket]") {
  const std::vector<UseSize> sizes{{DType::float32, 3}, {DType::float32, 33}, {DType::float64, 7},
                                   {DType::float64, 8}, {DType::float32, 1},  {DType::float32, 0}};
  for (const std::int64_t bytes : {1, 64, 128, 1 << 20}) {
    const auto layout = lay_out_buckets(sizes, bytes, bytes);
    std::int64_t end = 0;
    for (std::size_t u = 0; u < sizes.size(); ++u) {
      CHECK(layout.use_offsets[u] % 64 == 0);
      CHECK(layout.use_offsets[u] >= end);
      end = layout.use_offsets[u] + sizes[u].elements * static_cast<std::int64_t>(size_of(sizes[u].dtype));
      const Bucket& bucket = layout.buckets[static_cast<std::size_t>(layout.use_buckets[u])];
      CHECK(bucket.dtype == sizes[u].dtype);
      CHECK(layout.use_offsets[u] >= bucket.offset);
      CHECK(end <= bucket.offset + bucket.elements * static_cast<std::int64_t>(size_of(bucket.dtype)));
    }
    CHECK(layout.bytes >= end);
  }
}
