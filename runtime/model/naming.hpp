#pragma once

#include <map>
#include <string>
#include <string_view>

namespace rankine {

/// Keras's snake case of a class name: "RMSNormalization" is "rms_normalization", "Conv2D" is "conv2d".
std::string to_snake_case(std::string_view name);

/// Names in the order of asking: "dense", "dense_1", "dense_2".
class NameCounter {
 public:
  std::string next(const std::string& name) {
    const int before = counts_[name]++;
    return before == 0 ? name : name + "_" + std::to_string(before);
  }

 private:
  std::map<std::string, int> counts_;
};

}  // namespace rankine
