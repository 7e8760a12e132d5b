// Loads trained fixtures and writes them anew, for keras_opens_ours.py: write-keras-files FOLDER FIXTURE...
#include <cstdio>
#include <exception>
#include <string>

#include "checkpoint/keras_model.hpp"
#include "checkpoint/weights_reader.hpp"
#include "golden.hpp"

using namespace rankine;

namespace {

void rewrite(const std::string& folder, const std::string& fixture) {
  LoadedModel loaded = load_model(test::golden(fixture, "final.keras"));
  test::Arrays arrays;
  for (Variable& v : loaded.model.variables()) v.value = arrays.add(v.dtype, v.shape);
  read_weights(*loaded.weights, loaded.model.variables());
  StateDict optimizer = test::optimizer_state_of(*loaded.weights, arrays);
  read_optimizer_state(*loaded.weights, optimizer);
  write_model(folder + "/" + fixture + ".keras", loaded.model, optimizer);
  write_model(folder + "/" + fixture + ".weights.h5", loaded.model, optimizer);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    for (int i = 2; i < argc; ++i) rewrite(argv[1], argv[i]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
