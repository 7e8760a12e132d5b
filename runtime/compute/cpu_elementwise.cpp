#include <cmath>

#include "runtime/arithmetic/random.hpp"
#include "runtime/compute/checks.hpp"
#include "runtime/compute/cpu_backend.hpp"

namespace rankine {

void CpuBackend::add(Tensor a, Tensor b, Tensor out) {
  checks::present("add", {{"a", a}, {"b", b}, {"out", out}});
  checks::same_dtype("add", {{"a", a}, {"b", b}, {"out", out}});
  checks::same_size("add", {{"a", a}, {"b", b}, {"out", out}});
  checks::with_floating("add", a.dtype, [&](auto zero) {
    using T = decltype(zero);
    split_rows(a.elements(), 1, [&](std::int64_t i, std::int64_t end, int) {
      table<T>().elementwise.add(a.as<T>() + i, b.as<T>() + i, end - i, out.as<T>() + i);
    });
  });
}

void CpuBackend::multiply(Tensor a, Tensor b, Tensor out) {
  checks::present("multiply", {{"a", a}, {"b", b}, {"out", out}});
  checks::same_dtype("multiply", {{"a", a}, {"b", b}, {"out", out}});
  checks::same_size("multiply", {{"a", a}, {"b", b}, {"out", out}});
  checks::with_floating("multiply", a.dtype, [&](auto zero) {
    using T = decltype(zero);
    split_rows(a.elements(), 1, [&](std::int64_t i, std::int64_t end, int) {
      table<T>().elementwise.multiply(a.as<T>() + i, b.as<T>() + i, end - i, out.as<T>() + i);
    });
  });
}

void CpuBackend::scale(Tensor x, double factor, Tensor out) {
  checks::present("scale", {{"x", x}, {"out", out}});
  checks::same_dtype("scale", {{"x", x}, {"out", out}});
  checks::same_size("scale", {{"x", x}, {"out", out}});
  checks::with_floating("scale", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    split_rows(x.elements(), 1, [&](std::int64_t i, std::int64_t end, int) {
      table<T>().elementwise.scale(x.as<T>() + i, static_cast<T>(factor), end - i, out.as<T>() + i);
    });
  });
}

void CpuBackend::extremum(Extremum kind, Tensor a, Tensor b, Tensor out) {
  checks::present("extremum", {{"a", a}, {"b", b}, {"out", out}});
  checks::same_dtype("extremum", {{"a", a}, {"b", b}, {"out", out}});
  checks::same_size("extremum", {{"a", a}, {"b", b}, {"out", out}});
  checks::with_floating("extremum", a.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto& set = table<T>().elementwise;
    const auto taken = kind == Extremum::maximum ? set.maximum : set.minimum;
    split_rows(a.elements(), 1, [&](std::int64_t i, std::int64_t end, int) {
      taken(a.as<T>() + i, b.as<T>() + i, end - i, out.as<T>() + i);
    });
  });
}

void CpuBackend::extremum_gradient(Extremum kind, Tensor a, Tensor b, Tensor dy, Tensor da) {
  checks::present("extremum_gradient", {{"a", a}, {"b", b}, {"dy", dy}, {"da", da}});
  checks::same_dtype("extremum_gradient", {{"a", a}, {"b", b}, {"dy", dy}, {"da", da}});
  checks::same_size("extremum_gradient", {{"a", a}, {"b", b}, {"dy", dy}, {"da", da}});
  checks::with_floating("extremum_gradient", a.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto& set = table<T>().elementwise;
    const auto gradient = kind == Extremum::maximum ? set.maximum_gradient : set.minimum_gradient;
    split_rows(a.elements(), 1, [&](std::int64_t i, std::int64_t end, int) {
      gradient(a.as<T>() + i, b.as<T>() + i, dy.as<T>() + i, end - i, da.as<T>() + i);
    });
  });
}

void CpuBackend::add_bias(Tensor x, Tensor bias, Tensor out) {
  checks::present("add_bias", {{"x", x}, {"bias", bias}, {"out", out}});
  checks::same_dtype("add_bias", {{"x", x}, {"bias", bias}, {"out", out}});
  checks::same_size("add_bias", {{"x", x}, {"out", out}});
  const auto [rows, columns] = checks::rows_and_columns(x);
  checks::size("add_bias", {"bias", bias}, columns);
  checks::with_floating("add_bias", x.dtype, [&, rows = rows, columns = columns](auto zero) {
    using T = decltype(zero);
    split_rows(rows, columns, [&](std::int64_t r, std::int64_t end, int) {
      table<T>().elementwise.add_bias(x.as<T>() + r * columns, bias.as<T>(), end - r, columns,
                                      out.as<T>() + r * columns);
    });
  });
}

void CpuBackend::affine_columns(Tensor x, Tensor centre, Tensor scale, Tensor shift, Tensor out) {
  checks::present("affine_columns", {{"x", x}, {"scale", scale}, {"out", out}});
  checks::same_dtype("affine_columns", {{"x", x}, {"scale", scale}, {"out", out}});
  checks::same_size("affine_columns", {{"x", x}, {"out", out}});
  const auto [rows, columns] = checks::rows_and_columns(x);
  checks::size("affine_columns", {"scale", scale}, columns);
  for (const auto& [name, vector] : {std::pair{"centre", centre}, std::pair{"shift", shift}}) {
    if (!vector) continue;
    checks::same_dtype("affine_columns", {{"x", x}, {name, vector}});
    checks::size("affine_columns", {name, vector}, columns);
  }
  checks::with_floating("affine_columns", x.dtype, [&, rows = rows, columns = columns](auto zero) {
    using T = decltype(zero);
    const T* c = centre ? centre.as<T>() : nullptr;
    const T* s = shift ? shift.as<T>() : nullptr;
    split_rows(rows, columns, [&](std::int64_t r, std::int64_t end, int) {
      for (; r < end; ++r)
        table<T>().elementwise.affine(x.as<T>() + r * columns, c, scale.as<T>(), s, columns,
                                      out.as<T>() + r * columns);
    });
  });
}

void CpuBackend::activation(const ActivationFunction& f, Tensor x, Tensor y) {
  checks::present("activation", {{"x", x}, {"y", y}});
  checks::same_dtype("activation", {{"x", x}, {"y", y}});
  checks::same_size("activation", {{"x", x}, {"y", y}});
  checks::with_floating("activation", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    split_rows(x.elements(), 1, [&](std::int64_t i, std::int64_t end, int) {
      table<T>().activation.value(f, x.as<T>() + i, end - i, y.as<T>() + i);
    });
  });
}

void CpuBackend::activation_gradient(const ActivationFunction& f, Tensor x, Tensor dy, Tensor dx) {
  checks::present("activation_gradient", {{"x", x}, {"dy", dy}, {"dx", dx}});
  checks::same_dtype("activation_gradient", {{"x", x}, {"dy", dy}, {"dx", dx}});
  checks::same_size("activation_gradient", {{"x", x}, {"dy", dy}, {"dx", dx}});
  checks::with_floating("activation_gradient", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    split_rows(x.elements(), 1, [&](std::int64_t i, std::int64_t end, int) {
      table<T>().activation.gradient(f, x.as<T>() + i, dy.as<T>() + i, end - i, dx.as<T>() + i);
    });
  });
}

void CpuBackend::dropout(const DropoutMask& mask, Tensor x, Tensor y) {
  checks::present("dropout", {{"x", x}, {"y", y}});
  checks::same_dtype("dropout", {{"x", x}, {"y", y}});
  checks::same_size("dropout", {{"x", x}, {"y", y}});
  checks::require(x.shape.rank() >= 1, "dropout", "x must have a dimension of samples");
  checks::require(mask.rate >= 0.0 && mask.rate <= 1.0, "dropout", "rate must be in [0, 1]");
  const std::int64_t per_sample = x.shape.product(1, x.shape.rank());
  checks::require(per_sample < std::int64_t{1} << 34, "dropout",
                  "a sample has more elements than blocks number");
  // Parts of a sample begin at whole blocks of random words.
  const std::int64_t parts = (per_sample + k_item_elements - 1) / k_item_elements;
  const std::int64_t part_elements = std::min(per_sample, k_item_elements);
  checks::with_floating("dropout", x.dtype, [&](auto zero) {
    using T = decltype(zero);
    DropoutRun whole;
    whole.key = mask.seed;
    whole.step = static_cast<std::uint32_t>(mask.step);
    whole.use = random_word(RandomUse::dropout, mask.call);
    whole.threshold = static_cast<std::uint32_t>(std::ceil(mask.rate * 0x1p24));
    const T factor = static_cast<T>(1.0 / (1.0 - mask.rate));
    split_rows(x.shape[0] * parts, part_elements, [&](std::int64_t item, std::int64_t end, int) {
      for (; item < end; ++item) {
        const std::int64_t sample = item / parts, begin = (item - sample * parts) * k_item_elements;
        const std::int64_t at = sample * per_sample + begin;
        DropoutRun run = whole;
        run.first_block = static_cast<std::uint32_t>(begin / 4);
        run.sample = static_cast<std::uint32_t>(mask.first_sample + sample);
        table<T>().elementwise.dropout(run, factor, x.as<T>() + at,
                                       std::min(k_item_elements, per_sample - begin), y.as<T>() + at);
      }
    });
  });
}

}  // namespace rankine
