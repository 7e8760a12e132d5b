#include <catch2/catch.hpp>

#include "runtime/error.hpp"
#include "runtime/mesh/mesh.hpp"
#include "runtime/mesh/self_communicator.hpp"

using namespace rankine;
using Catch::Matchers::Contains;

TEST_CASE("mesh shapes are parsed", "[mesh]") {
  CHECK(MeshShape::parse("data=2,tensor=4") == MeshShape{2, 4});
  CHECK(MeshShape::parse("tensor=4,data=2") == MeshShape{2, 4});
  CHECK(MeshShape::parse("data=3") == MeshShape{3, 1});
  CHECK(MeshShape::parse("tensor=12") == MeshShape{1, 12});
  CHECK(MeshShape{2, 4}.to_string() == "data=2,tensor=4");
  CHECK(MeshShape{2, 4}.size() == 8);
}

TEST_CASE("a bad mesh shape names the part", "[mesh]") {
  const auto message = [](std::string_view text) -> std::string {
    try {
      MeshShape::parse(text);
    } catch (const UsageError& e) {
      return e.what();
    }
    return "accepted";
  };
  CHECK_THAT(message(""), Contains("'' isn't of the form axis=size"));
  CHECK_THAT(message("2x4"), Contains("'2x4' isn't of the form"));
  CHECK_THAT(message("data=2,"), Contains("'' isn't"));
  CHECK_THAT(message("data=2,tensr=4"), Contains("'tensr=4' names no axis"));
  CHECK_THAT(message("data=2,data=3"), Contains("'data=3' gives an axis a second time"));
  CHECK_THAT(message("data=0"), Contains("'data=0' needs a whole number"));
  CHECK_THAT(message("data=-1"), Contains("'data=-1' needs"));
  CHECK_THAT(message("data=2.5"), Contains("'data=2.5' needs"));
  CHECK_THAT(message("data=99999999999"), Contains("needs a whole number"));
  CHECK_THAT(message("data=65536,tensor=65536"), Contains("more ranks than can be counted"));
}

TEST_CASE("a mesh of one rank is two groups of one", "[mesh]") {
  SelfCommunicator self("world");
  Mesh mesh(self, {1, 1});
  CHECK(mesh.data().size() == 1);
  CHECK(mesh.tensor().size() == 1);
  CHECK(mesh.data().name() == "data");
  CHECK_THROWS_WITH(Mesh(self, {2, 1}), Contains("needs 2 ranks, but 1 were started"));
}

TEST_CASE("a group of one does everything at once", "[mesh]") {
  SelfCommunicator self("alone");
  float node[] = {1, 2, 3};
  float result[] = {0, 0, 0};
  void* const nodes[] = {node};
  const TreeShares shares{5, {{0, 5}}};
  CHECK(self.tree_all_reduce(DType::float32, shares, nodes, 3, result)->done());
  CHECK(result[2] == 3);
  const Range piece[] = {{1, 2}};
  float part[] = {7, 7, 7};
  self.tree_reduce_scatter(DType::float32, shares, nodes, 3, part, piece)->wait();
  CHECK((part[0] == 7 && part[1] == 2 && part[2] == 7));
  self.tree_all_reduce(DType::float32, {0, {{0, 0}}}, {}, 3, part)->wait();
  CHECK((part[0] == 0 && part[1] == 0 && part[2] == 0));
  CHECK(self.all_gather_text("x") == std::vector<std::string>{"x"});
  CHECK(self.split(-1, 0, "none") == nullptr);
  CHECK(self.split(3, 0, "child")->name() == "child");
  double value[] = {1.5};
  CHECK_THROWS_WITH(self.all_reduce(std::span<double>(value), ReduceOp::sum), Contains("tree_all_reduce"));
  CHECK_THROWS_WITH(self.tree_all_reduce(DType::int32, shares, nodes, 3, result), Contains("not int32"));
  CHECK_THROWS_WITH(self.tree_all_reduce(DType::float32, shares, {}, 3, result), Contains("brings 0 nodes"));
  CHECK_THROWS_WITH(self.broadcast(value, 8, 1), Contains("there is no rank 1"));
}
