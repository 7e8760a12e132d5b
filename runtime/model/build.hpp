#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/model/model.hpp"

namespace rankine {

/// A value of a layer's config, in Keras's words: {"units", 64}, {"activation", "gelu"}, {"use_bias", false}.
using Attribute = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;
struct NamedAttribute {
  NamedAttribute(std::string key, bool v) : name(std::move(key)), value(v) {}
  NamedAttribute(std::string key, int v) : name(std::move(key)), value(std::int64_t{v}) {}
  NamedAttribute(std::string key, std::int64_t v) : name(std::move(key)), value(v) {}
  NamedAttribute(std::string key, double v) : name(std::move(key)), value(v) {}
  NamedAttribute(std::string key, const char* v) : name(std::move(key)), value(std::string(v)) {}
  NamedAttribute(std::string key, std::vector<std::int64_t> v) : name(std::move(key)), value(std::move(v)) {}
  std::string name;
  Attribute value;
};

/// A value in a model under construction.
struct Symbol {
  int index = -1;
};

/// Builds a Functional model in C++. It writes a Keras config, so the result is exactly what Keras would
/// read:
///   ModelBuilder gpt("gpt");
///   auto x = gpt.input("tokens", {64}, DType::int32);
///   x = gpt.layer("Embedding", {{"input_dim", 96}, {"output_dim", 64}}, {x});
///   x = gpt.layer("Dense", {{"units", 96}}, {x});
///   Model model = gpt.build({x});
/// Errors of a layer's attributes are thrown by `build` as ConfigError.
class ModelBuilder {
 public:
  explicit ModelBuilder(std::string name);
  ~ModelBuilder();
  /// An input of samples of this shape.
  Symbol input(const std::string& name, std::vector<std::int64_t> shape, DType dtype = DType::float32);
  /// A new layer of a Keras class, called once. Without {"name", …} it gets Keras's automatic name.
  Symbol layer(const std::string& class_name, const std::vector<NamedAttribute>& config,
               const std::vector<Symbol>& inputs, CallArguments arguments = {});
  /// Another call of the layer that made `of`.
  Symbol again(Symbol of, const std::vector<Symbol>& inputs, CallArguments arguments = {});
  Model build(const std::vector<Symbol>& outputs);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rankine
