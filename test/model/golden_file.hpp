#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

/// The text of a file under test/golden, "nested/model.json".
std::string golden_text(const std::string& name);
nlohmann::json golden_json(const std::string& name);
