#pragma once

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "test/fakes/partial_backend.hpp"

namespace rankine::test {

/// What an optimizer needs of a backend, plainly written. New memory is full of NaN, so that whoever reads
/// what nobody wrote is found out.
class HostBackend final : public PartialBackend {
 public:
  std::string description() const override { return "host"; }
  Buffer allocate(std::size_t bytes) override {
    constexpr std::size_t k_line = 64;
    const std::size_t rounded = (bytes + k_line - 1) / k_line * k_line;
    void* data = std::aligned_alloc(k_line, rounded);
    std::memset(data, 0xff, rounded);
    allocated += rounded;
    return {data, bytes, [](void* memory, std::size_t) { std::free(memory); }};
  }
  void synchronize() override {}
  void fill(Tensor x, double value) override {
    each(x, [&](auto& element) { element = static_cast<std::decay_t<decltype(element)>>(value); });
  }
  void add(Tensor a, Tensor b, Tensor out) override {
    with(a, [&]<class T>() {
      for (std::size_t i = 0; i < a.span<T>().size(); ++i) {
        out.span<T>()[i] = a.span<T>()[i] + b.span<T>()[i];
      }
    });
  }
  std::int64_t find_non_finite(Tensor x) override {
    std::int64_t at = 0, found = -1;
    each(x, [&](auto element) {
      if (found < 0 && !std::isfinite(element)) found = at;
      ++at;
    });
    return found;
  }
  double sum_of_squares(Tensor x) override {
    double sum = 0.0;
    each(x, [&](double element) { sum += element * element; });
    return sum;
  }

  std::size_t allocated = 0;  ///< bytes, ever

 private:
  template <class F>
  static void with(const Tensor& x, F&& f) {
    x.dtype == DType::float64 ? f.template operator()<double>() : f.template operator()<float>();
  }
  template <class F>
  static void each(const Tensor& x, F&& f) {
    with(x, [&]<class T>() {
      for (T& element : x.span<T>()) f(element);
    });
  }
};

}  // namespace rankine::test
