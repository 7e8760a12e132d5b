#include <algorithm>
#include <atomic>

#include "runtime/compute/checks.hpp"
#include "runtime/compute/cpu_backend.hpp"

namespace rankine {

void CpuBackend::keep(Tensor ids, Tensor mask, Tensor out) {
  checks::present("keep", {{"ids", ids}, {"mask", mask}, {"out", out}});
  for (const auto& tensor : {ids, mask, out})
    checks::dtype("keep", {"ids, mask and out", tensor}, DType::int32);
  checks::same_size("keep", {{"ids", ids}, {"mask", mask}, {"out", out}});
  split_rows(ids.elements(), 1, [&](std::int64_t i, std::int64_t end, int) {
    for (; i < end; ++i)
      out.as<std::int32_t>()[i] = mask.as<std::int32_t>()[i] != 0 ? ids.as<std::int32_t>()[i] : 0;
  });
}

void CpuBackend::not_equal(Tensor ids, std::int32_t value, Tensor mask) {
  checks::present("not_equal", {{"ids", ids}, {"mask", mask}});
  checks::dtype("not_equal", {"ids", ids}, DType::int32);
  checks::dtype("not_equal", {"mask", mask}, DType::int32);
  checks::same_size("not_equal", {{"ids", ids}, {"mask", mask}});
  split_rows(ids.elements(), 1, [&](std::int64_t i, std::int64_t end, int) {
    for (; i < end; ++i) mask.as<std::int32_t>()[i] = ids.as<std::int32_t>()[i] != value ? 1 : 0;
  });
}

void CpuBackend::either(Tensor a, Tensor b, Tensor out) {
  checks::present("either", {{"a", a}, {"b", b}, {"out", out}});
  for (const auto& mask : {a, b, out}) checks::dtype("either", {"mask", mask}, DType::int32);
  checks::same_size("either", {{"a", a}, {"b", b}, {"out", out}});
  split_rows(a.elements(), 1, [&](std::int64_t i, std::int64_t end, int) {
    for (; i < end; ++i)
      out.as<std::int32_t>()[i] = (a.as<std::int32_t>()[i] | b.as<std::int32_t>()[i]) != 0 ? 1 : 0;
  });
}

std::int64_t CpuBackend::count_set(Tensor mask) {
  checks::present("count_set", {{"mask", mask}});
  checks::dtype("count_set", {"mask", mask}, DType::int32);
  std::atomic<std::int64_t> set{0};
  split_rows(mask.elements(), 1, [&](std::int64_t i, std::int64_t end, int) {
    const std::int32_t* entries = mask.as<std::int32_t>();
    set += std::count_if(entries + i, entries + end, [](std::int32_t entry) { return entry != 0; });
  });
  return set;
}

void CpuBackend::clear_rows(Tensor x, Tensor mask) {
  checks::present("clear_rows", {{"x", x}, {"mask", mask}});
  checks::dtype("clear_rows", {"mask", mask}, DType::int32);
  const std::int64_t rows = mask.elements();
  checks::require(rows == 0 ? x.elements() == 0 : x.elements() % rows == 0, "clear_rows",
                  "x must have whole rows for the mask");
  const std::int64_t columns = rows == 0 ? 0 : x.elements() / rows;
  checks::with_floating("clear_rows", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    split_rows(rows, columns, [&](std::int64_t r, std::int64_t end, int) {
      for (; r < end; ++r)
        if (mask.as<std::int32_t>()[r] == 0) std::fill_n(x.as<T>() + r * columns, columns, T(0));
    });
  });
}

void CpuBackend::scale_rows(Tensor x, Tensor weights) {
  checks::present("scale_rows", {{"x", x}, {"weights", weights}});
  const std::int64_t rows = weights.elements();
  checks::require(rows == 0 ? x.elements() == 0 : x.elements() % rows == 0, "scale_rows",
                  "x must have whole rows for the weights");
  const std::int64_t columns = rows == 0 ? 0 : x.elements() / rows;
  checks::with_floating("scale_rows", x.dtype, [&](auto x_zero) {
    checks::with_floating("scale_rows", weights.dtype, [&](auto w_zero) {
      using T = decltype(x_zero);
      split_rows(rows, columns, [&](std::int64_t r, std::int64_t end, int) {
        for (; r < end; ++r) {
          const auto weight = static_cast<double>(weights.as<decltype(w_zero)>()[r]);
          for (T *element = x.as<T>() + r * columns, *last = element + columns; element < last; ++element)
            *element = static_cast<T>(static_cast<double>(*element) * weight);
        }
      });
    });
  });
}

}  // namespace rankine
