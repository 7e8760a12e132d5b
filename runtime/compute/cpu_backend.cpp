#include "runtime/compute/cpu_backend.hpp"

#include <algorithm>
#include <string>

#include "runtime/arithmetic/float_environment.hpp"
#include "runtime/compute/checks.hpp"
#include "runtime/compute/memory.hpp"
#include "runtime/compute/permute.hpp"
#include "runtime/error.hpp"

namespace rankine {
namespace {

InstructionSet supported(InstructionSet set) {
  if (!processor_runs(set)) {
    throw ConfigError("this processor doesn't run " + std::string(name_of(set)) + " code; use " +
                      std::string(name_of(best_instruction_set())));
  }
  return set;
}

int at_least_one(int threads) {
  if (threads < 1) throw ConfigError("threads must be at least 1, not " + std::to_string(threads));
  return threads;
}

/// Calls f(Element()) with an unsigned integer of the dtype's size: what only moves needs no other meaning.
template <class F>
void with_bits(DType dtype, F&& f) {
  if (size_of(dtype) == 8) {
    f(std::uint64_t{});
  } else {
    f(std::uint32_t{});
  }
}

}  // namespace

CpuBackend::CpuBackend(int threads, InstructionSet instructions)
    : instructions_(supported(instructions)),
      pool_(at_least_one(threads)),
      gemm_workspace_(threads),
      attention_workspace_(threads),
      scratch_(static_cast<std::size_t>(threads)) {
  set_float_environment();
}

std::string CpuBackend::description() const {
  const std::string threads = std::to_string(pool_.threads());
  return "cpu, " + std::string(name_of(instructions_)) + ", " + threads +
         (pool_.threads() == 1 ? " thread" : " threads");
}

Buffer CpuBackend::allocate(std::size_t bytes) {
  return allocate_host_memory(bytes);
}

void CpuBackend::fill(Tensor x, double value) {
  checks::present("fill", {{"x", x}});
  const auto set = [&](auto* data, auto element) {
    split_rows(x.elements(), 1, [&](std::int64_t begin, std::int64_t end, int) {
      std::fill(data + begin, data + end, element);
    });
  };
  switch (x.dtype) {
    case DType::float32:
      return set(x.as<float>(), static_cast<float>(value));
    case DType::float64:
      return set(x.as<double>(), value);
    case DType::int32:
      return set(x.as<std::int32_t>(), static_cast<std::int32_t>(value));
  }
}

void CpuBackend::copy(Tensor from, Tensor to) {
  checks::present("copy", {{"from", from}, {"to", to}});
  checks::same_dtype("copy", {{"from", from}, {"to", to}});
  checks::same_size("copy", {{"from", from}, {"to", to}});
  with_bits(from.dtype, [&](auto bits) {
    using Element = decltype(bits);
    const auto* source = static_cast<const Element*>(from.data);
    split_rows(from.elements(), 1, [&](std::int64_t begin, std::int64_t end, int) {
      std::copy(source + begin, source + end, static_cast<Element*>(to.data) + begin);
    });
  });
}

void CpuBackend::copy_block(DType dtype, std::int64_t rows, std::int64_t columns, const void* from,
                            std::int64_t from_row, void* to, std::int64_t to_row) {
  checks::require(rows >= 0 && columns >= 0, "copy_block", "rows and columns must not be negative");
  if (rows == 0 || columns == 0) return;
  checks::require(from != nullptr && to != nullptr, "copy_block", "from or to has no memory");
  checks::require(rows == 1 || to_row >= columns, "copy_block", "rows of `to` would overlap");
  with_bits(dtype, [&](auto bits) {
    using Element = decltype(bits);
    const auto* source = static_cast<const Element*>(from);
    auto* target = static_cast<Element*>(to);
    split_rows(rows, columns, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t r = begin; r < end; ++r)
        std::copy_n(source + r * from_row, columns, target + r * to_row);
    });
  });
}

void CpuBackend::permute(Tensor from, std::span<const int> order, Tensor to) {
  checks::present("permute", {{"from", from}, {"to", to}});
  checks::same_dtype("permute", {{"from", from}, {"to", to}});
  checks::rank("permute", {"to", to}, from.shape.rank());
  std::vector<bool> seen(order.size());
  checks::require(static_cast<int>(order.size()) == from.shape.rank(), "permute",
                  "order must name each dimension once");
  for (std::size_t d = 0; d < order.size(); ++d) {
    const int source = order[d];
    checks::require(source >= 0 && source < from.shape.rank() && !seen[static_cast<std::size_t>(source)],
                    "permute", "order must name each dimension once");
    seen[static_cast<std::size_t>(source)] = true;
    if (to.shape[static_cast<int>(d)] != from.shape[source]) {
      checks::fail("permute", "to " + to.shape.to_string() + " isn't the permuted shape of from " +
                                  from.shape.to_string());
    }
  }
  if (from.elements() == 0) return;
  const Permutation permutation(from.shape, order);
  with_bits(from.dtype, [&](auto bits) {
    using Element = decltype(bits);
    split_rows(permutation.sizes[0], permutation.inner_elements(),
               [&](std::int64_t begin, std::int64_t end, int) {
                 permutation.copy(begin, end, static_cast<const Element*>(from.data),
                                  static_cast<Element*>(to.data));
               });
  });
}

void CpuBackend::gemm(const Gemm& product) {
  checks::require(product.m >= 0 && product.n >= 0 && product.k >= 0 && product.batch >= 0, "gemm",
                  "sizes must not be negative");
  if (product.k_leaves.extent != product.k) {
    checks::fail("gemm", "k is " + std::to_string(product.k) + " but its leaves cover " +
                             std::to_string(product.k_leaves.extent));
  }
  checks::with_floating("gemm", product.dtype, [&](auto zero) {
    rankine::gemm(table<decltype(zero)>(), product, pool_, gemm_workspace_);
  });
}

void CpuBackend::attention(const Attention& call) {
  checks::with_floating("attention", call.dtype, [&](auto zero) {
    rankine::attention(table<decltype(zero)>(), call, pool_, attention_workspace_);
  });
}

void CpuBackend::attention_gradient(const Attention& call, const AttentionGradient& gradient) {
  checks::with_floating("attention_gradient", call.dtype, [&](auto zero) {
    rankine::attention_gradient(table<decltype(zero)>(), call, gradient, pool_, attention_workspace_);
  });
}

std::unique_ptr<Backend> make_cpu_backend(int threads, InstructionSet instructions) {
  return std::make_unique<CpuBackend>(threads, instructions);
}

}  // namespace rankine
