// Regularizers and constraints against Keras's formulas.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/error.hpp"
#include "runtime/model/weight_rules.hpp"

using namespace rankine;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

struct Weight {
  std::vector<float> values;
  Shape shape;
  Tensor tensor() { return {values.data(), DType::float32, shape}; }
};

json object(const char* name, json config) {
  return {
      {"module", "keras"}, {"class_name", name}, {"config", std::move(config)}, {"registered_name", nullptr}};
}

double penalty(const json& config, Weight weight) {
  const auto backend = make_cpu_backend(1, best_instruction_set());
  return regularizer_from_config(config).penalty(*backend, weight.tensor());
}

std::vector<float> constrained(const json& config, Weight weight) {
  const auto constraint = constraint_from_config(config);
  constraint->check(weight.shape);
  constraint->apply(weight.tensor());
  return weight.values;
}

void check_near(const std::vector<float>& got, const std::vector<float>& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(3e-7).margin(1e-12));
}

}  // namespace

TEST_CASE("penalties are Keras's", "[model]") {
  const Weight w{{1, -2, 3, 0.5F}, {2, 2}};
  CHECK(penalty(object("L1", {{"l1", 0.5}}), w) == 3.25);
  CHECK(penalty(object("L2", {{"l2", 0.5}}), w) == 7.125);
  CHECK(penalty(object("L1L2", {{"l1", 2.0}, {"l2", 1.0}}), w) == 27.25);
  CHECK(penalty("l2", w) == Approx(0.1425).epsilon(1e-15));
  CHECK(penalty("l1", w) == Approx(0.065).epsilon(1e-15));
  CHECK(penalty("l1_l2", w) == 0.0);
  CHECK(penalty(object("L2", {{"l2", nullptr}}), w) == Approx(0.1425).epsilon(1e-15));
  const Weight many{std::vector<float>(1001, -0.25F), {1001}};
  CHECK(penalty(object("L1", {{"l1", 1.0}}), many) == 250.25);
}

TEST_CASE("constraints are Keras's", "[model]") {
  const Weight w{{3, -2, 4, 0.5F}, {2, 2}};  // columns (3, 4) and (-2, 0.5)
  CHECK(constrained("non_neg", w) == std::vector<float>{3, 0, 4, 0.5F});
  const float second = std::sqrt(4.25F);
  check_near(constrained(object("MaxNorm", {{"max_value", 2.5}, {"axis", 0}}), w), {1.5F, -2, 2, 0.5F});
  check_near(constrained("max_norm", w), {1.2F, -2 * 2 / second, 1.6F, 0.5F * 2 / second});
  check_near(constrained("unit_norm", w), {0.6F, -2 / second, 0.8F, 0.5F / second});
  const float first = std::sqrt(13.0F), last = std::sqrt(16.25F), all = std::sqrt(29.25F);
  check_near(constrained(object("UnitNorm", {{"axis", -1}}), w),
             {3 / first, -2 / first, 4 / last, 0.5F / last});
  check_near(constrained(object("UnitNorm", {{"axis", {0, 1}}}), w),
             {3 / all, -2 / all, 4 / all, 0.5F / all});
  const json rated =
      object("MinMaxNorm", {{"min_value", 2.5}, {"max_value", 4.0}, {"rate", 0.5}, {"axis", 0}});
  const float grown = (0.5F * 2.5F + 0.5F * second) / second;
  check_near(constrained(rated, w), {2.7F, -2 * grown, 3.6F, 0.5F * grown});
}

TEST_CASE("a constraint's axis must be in the variable's shape", "[model]") {
  const auto constraint = constraint_from_config(object("UnitNorm", {{"axis", 1}}));
  CHECK_NOTHROW(constraint->check({2, 3}));
  CHECK_THROWS_WITH(constraint->check({3}), Contains("axis 1") && Contains("(3,)"));
}
