#include "optimizer/clip.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "optimizer/keras_object.hpp"
#include "optimizer/rule.hpp"
#include "optimizer/wide_loop.hpp"
#include "runtime/error.hpp"
#include "runtime/model/known_words.hpp"

namespace rankine {
namespace {

/// out[i] = f(g[i]); the arrays may be the same.
template <class T, class F>
void each(std::int64_t count, const T* g, T* out, const F& f) {
  wide_loop([&]() __attribute__((always_inline)) {
    const T* const from = g;
    T* const to = out;
    const F function = f;
    for (std::int64_t i = 0, n = count; i < n; ++i) to[i] = function(from[i]);
  });
}

template <class T>
void clip_elements(const VariableClip& by, std::int64_t count, const T* g, T* out) {
  const T limit = static_cast<T>(by.clip.limit);
  const T norm = static_cast<T>(by.norm);
  const T divisor = std::max(norm, limit);
  const T scale = limit * std::min(T{1} / norm, static_cast<T>(1.0 / by.clip.limit));
  switch (by.clip.kind) {
    case ClipKind::none:
      return each(count, g, out, [](T x) { return x; });
    case ClipKind::norm:
      return each(count, g, out, [=](T x) { return x * limit / divisor; });
    case ClipKind::global_norm:
      return each(count, g, out, [=](T x) { return x * scale; });
    case ClipKind::value:
      return each(count, g, out, [=](T x) { return x < -limit ? -limit : x > limit ? limit : x; });
  }
}

}  // namespace

Clip Clip::from_config(ConfigReader& config) {
  struct Option {
    const char* key;
    ClipKind kind;
  };
  constexpr std::array k_options{Option{"clipnorm", ClipKind::norm},
                                 Option{"global_clipnorm", ClipKind::global_norm},
                                 Option{"clipvalue", ClipKind::value}};
  Clip clip;
  std::vector<std::string> given;
  for (const auto& option : k_options) {
    const auto limit = config.optional<double>(option.key);
    if (!limit) continue;
    if (*limit < 0) refuse_value(config, option.key, "at least 0");
    given.push_back(std::string(option.key) + "=" + config.raw(option.key)->dump());
    if (*limit > 0) clip = {option.kind, *limit};
  }
  if (given.size() > 1) {
    config.refuse("takes only one of clipnorm, global_clipnorm and clipvalue; got " + listed(given));
  }
  return clip;
}

void VariableClip::apply(DType dtype, std::int64_t count, const void* gradient, void* clipped) const {
  with_floating(dtype, [&]<class T>() {
    clip_elements(*this, count, static_cast<const T*>(gradient), static_cast<T*>(clipped));
  });
}

}  // namespace rankine
