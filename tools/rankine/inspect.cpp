#include <cstdio>

#include "checkpoint/describe.hpp"
#include "runtime/error.hpp"
#include "tools/rankine/command.hpp"

namespace rankine {

std::string inspect_help() {
  return "Shows what a Keras file holds: inputs, outputs, layers, variables with shapes and bytes, and the "
         "optimizer's state.\n"
         "Usage: rankine inspect PATH\n\n"
         "  PATH   .keras, a folder with its content, the .json of model.to_json(), .weights.h5, or the\n"
         "         .weights.json of sharded weights\n\n"
         "Example:\n"
         "  rankine inspect trained.keras\n";
}

void run_inspect(Arguments arguments) {
  if (arguments.size() != 1 || arguments.front().starts_with("-")) {
    throw UsageError("inspect takes one path and no flags: rankine inspect PATH");
  }
  std::fputs(to_text(describe_keras_file(arguments.front())).c_str(), stdout);
}

}  // namespace rankine
