#include <catch2/catch.hpp>
#include <vector>

#include "runtime/data/window_dataset.hpp"
#include "runtime/error.hpp"
#include "test/data/scratch.hpp"

using namespace rankine;
using Catch::Contains;
using test::ScratchFolder;

namespace {

Field ids_field(std::int64_t length, DType dtype = DType::int32) {
  return {"tokens", {Shape{length}, dtype}};
}
Field target_field(std::int64_t length) {
  return {"y", {Shape{length}, DType::int32}};
}
DataRequest request_of(std::int64_t length) {
  return {{ids_field(length)}, {target_field(length)}};
}

template <class T>
Tensor tensor_of(std::vector<T>& values, Shape shape) {
  values.resize(static_cast<std::size_t>(shape.elements()));
  return {values.data(), dtype_of<T>, std::move(shape)};
}

}  // namespace

TEST_CASE("text becomes windows whose targets are the next characters", "[data]") {
  const ScratchFolder folder;
  const std::string path = folder.write("text", "hello world");
  const std::string vocabulary = text_vocabulary(path);
  CHECK(vocabulary == " dehlorw");
  const auto data = open_text_dataset(path, vocabulary, request_of(3), {});
  // 11 characters: windows at 0, 3, 6; one at 9 would lack its last target.
  REQUIRE(data->samples() == 3);
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> targets;
  const std::vector<std::int64_t> indices{2, 0};
  data->read(indices, std::vector<Tensor>{tensor_of(ids, {2, 3}), tensor_of(targets, {2, 3})});
  const auto text_of = [&](const std::vector<std::int32_t>& values) {
    std::string text;
    for (const std::int32_t id : values) text += vocabulary.at(static_cast<std::size_t>(id));
    return text;
  };
  CHECK(text_of(ids) == "worhel");
  CHECK(text_of(targets) == "orlell");
  CHECK(data->bytes_read() == 2 * 4);
  CHECK_THAT(data->description(), Contains("3 windows of 3 characters"));
}

TEST_CASE("positions count from 0, and ids also come as floats", "[data]") {
  const ScratchFolder folder;
  const std::string path = folder.write("text", "abcabc");
  const DataRequest request{{{"positions", {Shape{2}, DType::int32}}, ids_field(2, DType::float32)},
                            {{"y", {Shape{2, 1}, DType::int32}}}};
  const auto data = open_text_dataset(path, "abc", request, {{"positions"}});
  REQUIRE(data->samples() == 2);
  std::vector<std::int32_t> positions;
  std::vector<float> ids;
  std::vector<std::int32_t> targets;
  const std::vector<std::int64_t> indices{1};
  data->read(indices, std::vector<Tensor>{tensor_of(positions, {1, 2}), tensor_of(ids, {1, 2}),
                                          tensor_of(targets, {1, 2, 1})});
  CHECK(positions == std::vector<std::int32_t>{0, 1});
  CHECK(ids == std::vector<float>{2, 0});
  CHECK(targets == std::vector<std::int32_t>{0, 1});
}

TEST_CASE("tokens of two and four bytes", "[data]") {
  const ScratchFolder folder;
  const std::string two = folder.write("two", std::string("\x01\x00\xff\xff\x03\x00\x04\x00", 8));
  const std::string four =
      folder.write("four", std::string("\x01\x00\x00\x00\x00\x00\x01\x00\x03\x00\x00\x00", 12));
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> targets;
  const std::vector<std::int64_t> indices{0};
  const auto read = [&](Dataset& data) {
    data.read(indices, std::vector<Tensor>{tensor_of(ids, {1, 2}), tensor_of(targets, {1, 2})});
  };
  const auto data = open_token_dataset(two, 2, request_of(2), {});
  CHECK(data->samples() == 1);
  read(*data);
  CHECK(ids == std::vector<std::int32_t>{1, 65535});
  CHECK(targets == std::vector<std::int32_t>{65535, 3});
  read(*open_token_dataset(four, 4, request_of(2), {}));
  CHECK(ids == std::vector<std::int32_t>{1, 65536});
  CHECK(targets == std::vector<std::int32_t>{65536, 3});
}

TEST_CASE("tokens that don't fit are named", "[data]") {
  const ScratchFolder folder;
  const std::string path =
      folder.write("ids", std::string("\x01\x00\x00\x00\x00\x00\x00\x80\x03\x00\x00\x00", 12));
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> targets;
  const auto data = open_token_dataset(path, 4, request_of(2), {});
  const std::vector<std::int64_t> indices{0};
  CHECK_THROWS_WITH(
      data->read(indices, std::vector<Tensor>{tensor_of(ids, {1, 2}), tensor_of(targets, {1, 2})}),
      Contains("sample 0") && Contains("2147483648 at position 1") && Contains("--token-bytes"));
  CHECK_THROWS_WITH(open_token_dataset(folder.write("odd", "abc"), 2, request_of(1), {}),
                    Contains("3 bytes") && Contains("--token-bytes"));
  CHECK_THROWS_AS(open_token_dataset(path, 3, request_of(2), {}), ConfigError);
}

TEST_CASE("characters outside the training text are named", "[data]") {
  const ScratchFolder folder;
  const auto data = open_text_dataset(folder.write("text", "abx"), "ab", request_of(2), {});
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> targets;
  const std::vector<std::int64_t> indices{0};
  CHECK_THROWS_WITH(
      data->read(indices, std::vector<Tensor>{tensor_of(ids, {1, 2}), tensor_of(targets, {1, 2})}),
      Contains("byte 120 at position 2") && Contains("vocabulary"));
}

TEST_CASE("texts that can't be used are refused", "[data]") {
  const ScratchFolder folder;
  CHECK_THROWS_WITH(open_text_dataset(folder / "none", "a", request_of(2), {}),
                    Contains("none") && Contains("No such file"));
  CHECK_THROWS_WITH(text_vocabulary(folder / "."), Contains("isn't a regular file"));
  const std::string shorter = folder.write("short", "ab");
  CHECK_THROWS_WITH(open_text_dataset(shorter, "ab", request_of(2), {}), Contains("2 characters, too few"));
  CHECK_THROWS_AS(open_text_dataset(folder.write("empty", ""), "", request_of(2), {}), DataError);
  CHECK(open_text_dataset(shorter, "ab", request_of(1), {})->samples() == 1);
}

TEST_CASE("a text that shrinks while it is read gives an error", "[data]") {
  const ScratchFolder folder;
  const std::string path = folder.write("text", "abcdefghi");
  const auto data = open_text_dataset(path, "abcdefghi", request_of(2), {});
  std::filesystem::resize_file(path, 4);
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> targets;
  const std::vector<std::int64_t> indices{3};
  CHECK_THROWS_WITH(
      data->read(indices, std::vector<Tensor>{tensor_of(ids, {1, 2}), tensor_of(targets, {1, 2})}),
      Contains("9 bytes long when it was opened"));
}

TEST_CASE("models that aren't language models are refused text", "[data]") {
  const ScratchFolder folder;
  const std::string path = folder.write("text", "abcdef");
  const auto open = [&](const DataRequest& request, const WindowOptions& options) {
    return open_text_dataset(path, "abcdef", request, options);
  };
  const Field more{"more", {Shape{2}, DType::int32}};
  CHECK_THROWS_WITH(open({{ids_field(2), more}, {target_field(2)}}, {}),
                    Contains("\"arange\"") && Contains("'more'"));
  CHECK_THROWS_WITH(open(request_of(2), {{"places"}}), Contains("no input 'places'") && Contains("'tokens'"));
  CHECK_THROWS_WITH(open(request_of(2), {{"tokens"}}), Contains("0 of 'tokens'"));
  CHECK_THROWS_WITH(open({{{"x", {Shape{2, 3}, DType::int32}}}, {target_field(2)}}, {}), Contains("(2, 3)"));
  CHECK_THROWS_WITH(open({{ids_field(2)}, {target_field(2), more}}, {}), Contains("one target"));
  CHECK_THROWS_WITH(open({{ids_field(2)}, {target_field(3)}}, {}), Contains("'y' wants (3,) int32"));
  CHECK_THROWS_WITH(open({{ids_field(2)}, {{"y", {Shape{2}, DType::float32}}}}, {}),
                    Contains("sparse_categorical_crossentropy"));
}
