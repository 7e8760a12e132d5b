#include <catch2/catch.hpp>
#include <cstring>

#include "runtime/model/model.hpp"
#include "test/model/golden_file.hpp"

using namespace rankine;

TEST_CASE("weights live in one aligned memory", "[model][weights]") {
  const auto backend = make_cpu_backend(1, InstructionSet::portable);
  Model model = Model::from_config(golden_text("gqa/model.json"));
  for (const Variable& variable : model.variables()) CHECK_FALSE(variable.value);
  model.allocate(*backend);
  const std::byte* before = nullptr;
  for (const Variable& variable : model.variables()) {
    const auto* at = static_cast<const std::byte*>(variable.value.data);
    CHECK(reinterpret_cast<std::uintptr_t>(at) % 64 == 0);
    CHECK(variable.value.shape == variable.shape);
    if (before != nullptr) CHECK(at >= before);
    before = at + variable.value.bytes();
  }
}

TEST_CASE("first weights follow the initializers and the seed", "[model][weights]") {
  const auto backend = make_cpu_backend(1, InstructionSet::portable);
  const auto made = [&](std::uint64_t seed) {
    Model model = Model::from_config(golden_text("tiny_gpt/model.json"));
    model.allocate(*backend);
    model.initialize(seed);
    return model;
  };
  const Model model = made(3);
  const Model same = made(3);
  const Model other = made(4);
  for (std::size_t i = 0; i < model.variables().size(); ++i) {
    const Variable& variable = model.variables()[i];
    CAPTURE(variable.path);
    const auto values = variable.value.span<float>();
    CHECK(std::memcmp(values.data(), same.variables()[i].value.data, variable.value.bytes()) == 0);
    const bool is_kernel = variable.path.ends_with("/kernel") || variable.path.ends_with("/embeddings");
    const bool differs =
        std::memcmp(values.data(), other.variables()[i].value.data, variable.value.bytes()) != 0;
    CHECK(differs == is_kernel);
    if (is_kernel) continue;
    const float constant = variable.path.ends_with("/gamma") ? 1.0F : 0.0F;
    for (const float value : values) REQUIRE(value == constant);
  }
  // Equal shapes, other variables: other numbers.
  const auto& query = model.variables()[4].value;
  const auto& key = model.variables()[6].value;
  REQUIRE(query.shape == key.shape);
  CHECK(std::memcmp(query.data, key.data, query.bytes()) != 0);
}
