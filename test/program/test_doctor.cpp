#include <catch2/catch.hpp>
#include <numeric>

#include "tools/rankine/doctor_report.hpp"

using namespace rankine;
using Catch::Contains;

namespace {

RankFacts rank_on(int rank, int node, int local, std::vector<int> cores) {
  RankFacts facts;
  facts.rank = rank;
  facts.host = "node" + std::to_string(node);
  facts.node = node;
  facts.local_rank = local;
  facts.cores = std::move(cores);
  facts.node_cores = 8;
  facts.instructions = "avx512";
  facts.versions = "rankine 1";
  facts.shm_bytes = std::int64_t{8} << 30;
  return facts;
}

std::vector<int> cores(int first, int count) {
  std::vector<int> list(static_cast<std::size_t>(count));
  std::iota(list.begin(), list.end(), first);
  return list;
}

std::string all(const std::vector<std::string>& texts) {
  return std::accumulate(texts.begin(), texts.end(), std::string());
}

}  // namespace

TEST_CASE("a healthy job has nothing said against it", "[doctor]") {
  std::vector<RankFacts> ranks;
  for (int r = 0; r < 4; ++r) ranks.push_back(rank_on(r, r / 2, r % 2, cores(r % 2 * 4, 4)));
  const DoctorReport report = examine(ranks);
  CHECK(report.warnings.empty());
  CHECK(report.faults.empty());
  CHECK_THAT(report.table, Contains("3  node1      1  avx512        4-7"));
}

TEST_CASE("what would be slow is said with what to do", "[doctor]") {
  const auto warnings = [](const std::vector<RankFacts>& ranks) { return all(examine(ranks).warnings); };
  CHECK_THAT(warnings({rank_on(0, 0, 0, {0}), rank_on(1, 0, 1, {1})}),
             Contains("the ranks use 2 of 8 cores") && Contains("--bind-to none"));
  std::vector<RankFacts> crowd;
  for (int r = 0; r < 9; ++r) crowd.push_back(rank_on(r, 0, r, cores(0, 8)));
  CHECK_THAT(warnings(crowd), Contains("9 ranks share 8 cores"));
  auto pair = std::vector{rank_on(0, 0, 0, cores(0, 8)), rank_on(1, 0, 1, cores(0, 8))};
  pair[1].instructions = "avx2";
  CHECK_THAT(warnings(pair), Contains("ranks 1 have other processors"));
  pair[0].shm_bytes = pair[1].shm_bytes = std::int64_t{32} << 20;
  CHECK_THAT(warnings(pair), Contains("/dev/shm has 32 MiB"));
  pair[0].instructions = "portable";
  CHECK_THAT(warnings(pair), Contains("neither AVX-512 nor AVX2"));
}

TEST_CASE("ranks of other versions are a fault", "[doctor]") {
  std::vector<RankFacts> ranks;
  for (int r = 0; r < 6; ++r) ranks.push_back(rank_on(r, 0, r, cores(0, 8)));
  for (const std::size_t r : {2u, 3u, 5u}) ranks[r].versions = "rankine 2";
  CHECK_THAT(all(examine(ranks).faults), Contains("ranks 2-3,5 run other versions"));
}

TEST_CASE("facts travel as text", "[doctor]") {
  const RankFacts facts = rank_on(3, 1, 2, {1, 2, 5});
  const RankFacts back = rank_facts_from(to_text(facts));
  CHECK(to_text(back) == to_text(facts));
  CHECK(back.cores == facts.cores);
  CHECK(back.shm_bytes == facts.shm_bytes);
  CHECK(ranges_text(std::vector<int>{}).empty());
}
