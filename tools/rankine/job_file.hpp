#pragma once

#include <string>
#include <vector>

namespace rankine {

/// One `key = value` of a job file. A list has several values.
struct JobEntry {
  std::string section;  ///< "" before the first [section]
  std::string key;
  std::vector<std::string> values;
  bool is_list = false;
  std::string origin;  ///< for messages: "'job.toml', line 3"
};

/// Reads a job file: TOML with texts, numbers, true and false, and lists of these, in the top table or in
/// sections. Throws UsageError naming file and line.
std::vector<JobEntry> read_job_file(const std::string& path);

}  // namespace rankine
