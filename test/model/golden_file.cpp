#include "test/model/golden_file.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "test/model/golden_path.hpp"

std::string golden_text(const std::string& name) {
  std::ifstream file(std::string(k_golden) + "/" + name);
  if (!file) throw std::runtime_error("test/golden lacks " + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

nlohmann::json golden_json(const std::string& name) {
  return nlohmann::json::parse(golden_text(name));
}
