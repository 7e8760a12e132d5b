#include <zip.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/atomic_file.hpp"
#include "checkpoint/keras_archive.hpp"
#include "checkpoint/weights_reader.hpp"
#include "golden.hpp"
#include "runtime/error.hpp"

using namespace rankine;
using namespace rankine::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

struct ZipMember {
  std::string name;
  std::string content;
  zip_int32_t method = ZIP_CM_STORE;
};

void write_zip(const std::string& path, const std::vector<ZipMember>& members) {
  int code = 0;
  zip_t* zip = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  REQUIRE(zip != nullptr);
  for (const ZipMember& member : members) {
    zip_source_t* source = zip_source_buffer(zip, member.content.data(), member.content.size(), 0);
    const zip_int64_t index = zip_file_add(zip, member.name.c_str(), source, 0);
    REQUIRE(index >= 0);
    zip_set_file_compression(zip, static_cast<zip_uint64_t>(index), member.method, 0);
  }
  REQUIRE(zip_close(zip) == 0);
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string weights_text() {
  return text_of(read_bytes(golden("mlp_sgd", "final.weights.h5")));
}

std::size_t find(const std::vector<std::byte>& bytes, const std::string& text, std::size_t from = 0) {
  const std::string all = text_of(bytes);
  const std::size_t place = all.find(text, from);
  REQUIRE(place != std::string::npos);
  return place;
}

void check_weights(const KerasArchive& archive) {
  GoldenState state("mlp_sgd");
  read_weights(archive.weights(), state.variables);
  CHECK(values_of(state.variables[0].value) == expected_values("mlp_sgd", "final/000"));
}

}  // namespace

TEST_CASE("Keras's archives are read", "[checkpoint]") {
  for (const std::string& fixture : fixtures()) {
    const auto archive = KerasArchive::open(golden(fixture, "final.keras"));
    const auto config = nlohmann::json::parse(archive.config());
    CHECK(config["config"]["name"].is_string());
    CHECK(config["compile_config"]["optimizer"].is_object());
    CHECK(nlohmann::json::parse(archive.metadata())["keras_version"] == "3.15.1");
  }
}

TEST_CASE("Deflated members in any order, and folders, are read", "[checkpoint]") {
  const TemporaryFolder folder;
  write_zip(folder / "m.keras", {{"model.weights.h5", weights_text(), ZIP_CM_DEFLATE},
                                 {"config.json", "{\"a\": 1}", ZIP_CM_DEFLATE}});
  const auto archive = KerasArchive::open(folder / "m.keras");
  CHECK(archive.config() == "{\"a\": 1}");
  CHECK(archive.metadata().empty());
  check_weights(archive);
  check_weights(archive);  // again: the member is read anew

  const std::string directory = folder / "unzipped";
  fs::create_directory(directory);
  CHECK_FALSE(KerasArchive::looks_like(directory));
  CHECK_THROWS_WITH(KerasArchive::open(directory), Contains("no member config.json"));
  std::ofstream(directory + "/config.json") << "{}";
  CHECK(KerasArchive::looks_like(directory));
  CHECK_THROWS_WITH(KerasArchive::open(directory).weights(), Contains("no member model.weights.h5"));
  fs::copy(golden("mlp_sgd", "final.weights.h5"), directory + "/model.weights.h5");
  check_weights(KerasArchive::open(directory));
}

TEST_CASE("Archives without what is needed say so", "[checkpoint]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(KerasArchive::open(folder / "none.keras"),
                    Contains("none.keras") && Contains("No such file"));
  CHECK_FALSE(fs::exists(folder / "none.keras"));
  write_zip(folder / "m.keras", {{"model.weights.h5", weights_text()}});
  CHECK_THROWS_WITH(KerasArchive::open(folder / "m.keras"), Contains("no member config.json"));
  write_zip(folder / "m.keras", {{"config.json", "{}"}});
  CHECK_THROWS_WITH(KerasArchive::open(folder / "m.keras").weights(), Contains("no member model.weights.h5"));
  write_zip(folder / "m.keras", {{"config.json", "{}"}, {"model.weights.npz", "PK"}});
  CHECK_THROWS_WITH(KerasArchive::open(folder / "m.keras").weights(),
                    Contains("model.weights.npz") && Contains("isn't read"));
  write_bytes(folder / "m.keras", std::as_bytes(std::span("this is no zip")));
  CHECK_THROWS_WITH(KerasArchive::open(folder / "m.keras"),
                    Contains("15 bytes") && Contains("as a .keras archive"));
  CHECK_THROWS_WITH(KerasArchive::open(golden("mlp_sgd", "data.h5")),
                    Contains("is an HDF5 file") && !Contains("damaged"));
}

TEST_CASE("An archive cut anywhere is refused", "[checkpoint]") {
  const TemporaryFolder folder;
  const auto bytes = read_bytes(golden("mlp_sgd", "final.keras"));
  for (std::size_t i = 0; i <= 60; ++i) {
    const std::size_t length = i == 60 ? bytes.size() - 1 : bytes.size() * i / 60;
    write_bytes(folder / "cut.keras", std::span(bytes).first(length));
    CHECK_THROWS_AS(KerasArchive::open(folder / "cut.keras"), CheckpointError);
  }
}

TEST_CASE("A flipped bit in an archive never goes unseen", "[checkpoint]") {
  const TemporaryFolder folder;
  const auto bytes = read_bytes(golden("mlp_sgd", "final.keras"));
  GoldenState right("mlp_sgd");
  read_weights(WeightsFile::open(golden("mlp_sgd", "final.keras")), right.variables);
  const std::string config = KerasArchive::open(golden("mlp_sgd", "final.keras")).config();
  int refused = 0;
  for (std::size_t place = 1; place < bytes.size(); place += 211) {
    auto damaged = bytes;
    damaged[place] ^= std::byte{0x10};
    write_bytes(folder / "m.keras", damaged);
    GoldenState state("mlp_sgd");
    try {
      const auto archive = KerasArchive::open(folder / "m.keras");
      read_weights(archive.weights(), state.variables);
      // What isn't content (a time stamp) may change.
      CHECK(archive.config() == config);
      for (std::size_t i = 0; i < state.variables.size(); ++i)
        CHECK(values_of(state.variables[i].value) == values_of(right.variables[i].value));
    } catch (const CheckpointError&) {
      ++refused;
    }
  }
  CHECK(refused > 250);
}

TEST_CASE("Members that lie about their size are refused before memory is taken", "[checkpoint]") {
  const TemporaryFolder folder;
  SECTION("more than deflate can give") {
    write_zip(folder / "m.keras", {{"config.json", "{\"a\": \"aaaaaaaaaaaaaaaaaaaaaaaa\"}", ZIP_CM_DEFLATE}});
    auto bytes = read_bytes(folder / "m.keras");
    // The uncompressed size in the central directory, 24 bytes into the entry.
    const std::size_t entry = find(bytes, std::string("PK\1\2", 4));
    const std::uint32_t huge = 0xfffffff0U;
    std::memcpy(&bytes[entry + 24], &huge, sizeof huge);
    write_bytes(folder / "m.keras", bytes);
    CHECK_THROWS_WITH(KerasArchive::open(folder / "m.keras"),
                      Contains("config.json claims 4294967280 bytes"));
  }
  SECTION("a bomb that deflate can give") {
    write_zip(folder / "m.keras",
              {{"config.json", "{}"}, {"model.weights.h5", std::string(4 << 20, 'a'), ZIP_CM_DEFLATE}});
    const ArchiveLimits limits{1 << 20, 1 << 20, 100};
    CHECK_THROWS_WITH(KerasArchive::open(folder / "m.keras", limits).weights(),
                      Contains("to 4194304") && Contains("zip bomb"));
  }
  SECTION("a config of unreasonable length") {
    write_zip(folder / "m.keras", {{"config.json", std::string(2 << 20, ' ')}});
    CHECK_THROWS_WITH(KerasArchive::open(folder / "m.keras", ArchiveLimits{1 << 20}), Contains("zip bomb"));
  }
  SECTION("Keras's own limits are the default") {
    const ArchiveLimits limits;
    CHECK(limits.floor_bytes == std::size_t{4} << 30);
    CHECK(limits.ratio == 100);
  }
}

TEST_CASE("Two members of one name are refused", "[checkpoint]") {
  const TemporaryFolder folder;
  write_zip(folder / "m.keras", {{"config.json", "{}"}, {"confih.json", "{}"}});
  auto bytes = read_bytes(folder / "m.keras");
  for (std::size_t place = find(bytes, "confih"), i = 0; i < 2;
       ++i, place = i < 2 ? find(bytes, "confih") : 0)
    bytes[place + 5] = std::byte{'g'};
  write_bytes(folder / "m.keras", bytes);
  CHECK_THROWS_WITH(KerasArchive::open(folder / "m.keras"), Contains("two members config.json"));
}

TEST_CASE("Archives are written as Keras writes them", "[checkpoint]") {
  const TemporaryFolder folder;
  const std::string weights = weights_text();
  write_archive(folder / "m.keras", "{\"class_name\": \"Sequential\"}", std::as_bytes(std::span(weights)));
  int code = 0;
  zip_t* zip = zip_open((folder / "m.keras").c_str(), ZIP_RDONLY, &code);
  REQUIRE(zip != nullptr);
  REQUIRE(zip_get_num_entries(zip, 0) == 3);
  const char* names[]{"metadata.json", "config.json", "model.weights.h5"};
  for (zip_uint64_t i = 0; i < 3; ++i) {
    zip_stat_t stat;
    zip_stat_index(zip, i, 0, &stat);
    CHECK(std::string(stat.name) == names[i]);
    CHECK(stat.comp_method == ZIP_CM_STORE);
  }
  zip_discard(zip);

  const auto archive = KerasArchive::open(folder / "m.keras");
  CHECK(archive.config() == "{\"class_name\": \"Sequential\"}");
  const auto metadata = nlohmann::json::parse(archive.metadata());
  CHECK(metadata["keras_version"] == "3.15.1");
  CHECK(metadata["writer"] == "rankine");
  CHECK(metadata["date_saved"].get<std::string>().size() == 19);
  check_weights(archive);
}

TEST_CASE("A failed save leaves what was there", "[checkpoint]") {
  const TemporaryFolder folder;
  write_bytes(folder / "m.keras", std::as_bytes(std::span("old")));
  {
    AtomicFile file(folder / "m.keras");
    file.write(std::as_bytes(std::span("half of the ne")));
  }
  CHECK(read_bytes(folder / "m.keras").size() == 4);
  CHECK(std::distance(fs::directory_iterator(folder / ""), fs::directory_iterator()) == 1);

  AtomicFile file(folder / "m.keras");
  file.write(std::as_bytes(std::span("new text")));
  file.commit();
  CHECK(read_bytes(folder / "m.keras").size() == 9);
  CHECK(std::distance(fs::directory_iterator(folder / ""), fs::directory_iterator()) == 1);
}

TEST_CASE("Paths that can't be written are named with the reason", "[checkpoint]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(write_archive(folder / "no/m.keras", "{}", {}),
                    Contains("no/m.keras: No such file or directory"));
  fs::create_directory(folder / "taken.keras");
  CHECK_THROWS_WITH(write_archive(folder / "taken.keras", "{}", {}), Contains("taken.keras: Is a directory"));
  CHECK(std::distance(fs::directory_iterator(folder / ""), fs::directory_iterator()) == 1);
}
