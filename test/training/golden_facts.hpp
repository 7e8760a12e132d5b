#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "test/training/fixture_run.hpp"

/// What Keras computed for the golden models (test/golden/README.md), and how far a run is from it.
namespace rankine::testing {

/// The golden models whose optimizer is here.
const std::vector<std::string>& trained_fixtures();

/// A JSON file of a fixture's: "expected.json".
nlohmann::json golden_json(const std::string& fixture, const std::string& file);
/// An array of an HDF5 file of a fixture's.
std::vector<double> golden_array(const std::string& fixture, const std::string& file,
                                 const std::string& path);
/// The array that has a number: (..., "final", 3) reads final/003.
std::vector<double> golden_array(const std::string& fixture, const std::string& file,
                                 const std::string& group, std::size_t index);

/// What a run of the fixture needs besides the defaults.
RunOptions options_for(const std::string& fixture);

/// Between two arrays, element by element.
struct Difference {
  double largest = 0.0;
  double rms = 0.0;  ///< root mean square
};
Difference difference(const std::vector<double>& ours, const std::vector<double>& keras);

/// The largest size of an element.
double largest(const std::vector<double>& values);

}  // namespace rankine::testing
