// Writes data files, good and bad, for the tests of the program into the folder that it is given. They suit a
// model with 32 float inputs and 10 classes.

#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "test/data/scratch.hpp"

namespace {

constexpr hsize_t k_samples = 48;
constexpr hsize_t k_width = 32;

std::vector<float> inputs() {
  std::vector<float> values(k_samples * k_width);
  // Any spread of values serves; these repeat after a prime number of elements.
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) / 50.0F - 1.0F;
  return values;
}

std::vector<std::int32_t> labels() {
  std::vector<std::int32_t> values(k_samples);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * 7 % 10);
  return values;
}

using rankine::test::Hdf5Writer;

void write_all(const std::string& folder) {
  const auto file = [&](const char* name) { return folder + "/" + name; };
  Hdf5Writer(file("good.h5"))
      .array("/inputs/x", {k_samples, k_width}, inputs())
      .array("/targets/y", {k_samples}, labels());
  Hdf5Writer(file("validation.h5"))
      .array("/inputs/x", {7, k_width}, std::vector<float>(7 * k_width, 0.5F))
      .array("/targets/y", {7}, std::vector<std::int32_t>(7, 3));
  Hdf5Writer(file("shape.h5"))
      .array("/inputs/x", {k_samples, k_width / 2}, std::vector<float>(k_samples * k_width / 2))
      .array("/targets/y", {k_samples}, labels());
  Hdf5Writer(file("dtype.h5"))
      .array("/inputs/x", {k_samples, k_width}, inputs())
      .array("/targets/y", {k_samples}, std::vector<float>(k_samples));
  Hdf5Writer(file("missing.h5"))
      .array("/inputs/z", {k_samples, k_width}, inputs())
      .array("/targets/y", {k_samples}, labels());
  Hdf5Writer(file("empty.h5"))
      .array<float>("/inputs/x", {0, k_width}, {})
      .array<std::int32_t>("/targets/y", {0}, {});
  std::vector<std::int32_t> wrong_label = labels();
  wrong_label[17] = 10;
  Hdf5Writer(file("label.h5"))
      .array("/inputs/x", {k_samples, k_width}, inputs())
      .array("/targets/y", {k_samples}, wrong_label);
  std::vector<float> not_a_number = inputs();
  not_a_number[20 * k_width + 5] = std::numeric_limits<float>::quiet_NaN();
  Hdf5Writer(file("nan.h5"))
      .array("/inputs/x", {k_samples, k_width}, not_a_number)
      .array("/targets/y", {k_samples}, labels());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("make-inputs FOLDER\n", stderr);
    return 2;
  }
  write_all(argv[1]);
  return 0;
}
