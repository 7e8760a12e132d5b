#include <catch2/catch.hpp>

#include "runtime/error.hpp"
#include "test/data/scratch.hpp"
#include "tools/rankine/output_check.hpp"

using namespace rankine;
using Catch::Contains;

TEST_CASE("a place to write is tried and left as it was", "[program]") {
  const test::ScratchFolder folder;
  CHECK_NOTHROW(check_can_write("--output", folder / "new.keras"));
  CHECK_NOTHROW(check_can_write("--log", folder.write("old.jsonl", "x")));
  std::size_t entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "")) {
    CHECK(entry.path().filename() == "old.jsonl");
    ++entries;
  }
  CHECK(entries == 1);
}

TEST_CASE("places that can't be written are refused before training", "[program]") {
  const test::ScratchFolder folder;
  CHECK_THROWS_WITH(check_can_write("--output", folder / ""), Contains("--output") && Contains("folder"));
  CHECK_THROWS_WITH(check_can_write("--log", folder / "none/log"), Contains("there is no folder"));
  folder.write("file", "x");
  CHECK_THROWS_AS(check_can_write("--log", folder / "file/log"), ConfigError);
  // /proc takes no new files, also not from root.
  CHECK_THROWS_WITH(check_can_write("--log", "/proc/rankine.jsonl"), Contains("/proc/rankine.jsonl"));
}
