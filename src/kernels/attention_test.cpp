// Attention against plain loops in double: every number of queries and keys, both memory layouts, all masks, and rows
// that a softmax makes NaN.
#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/test_support.h"

namespace selkie::kernels {
namespace {

using namespace testing;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr float untouched = 12345.0f;

enum class Mask { none, full, per_key, per_query, single, transposed };

struct Case {
  int64_t queries, keys;
  int64_t depth = 8;
  int64_t columns = 8;
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t key_heads = 1;
  bool rows_outside = false;  // [batch, rows, heads, size]
  Mask added = Mask::none;
  Mask allowed = Mask::none;
  bool causal = false;
  int64_t causal_offset = 0;
  int threads = 1;
  float range = 1;  // of queries: how unequal weights are
  Guarded::Side side = Guarded::Side::end;
};

HeadStrides strides_of(bool rows_outside, int64_t heads, int64_t rows, int64_t size) {
  if (rows_outside) return {.batch = rows * heads * size, .head = size, .row = heads * size};
  return {.batch = heads * rows * size, .head = rows * size, .row = size};
}

MaskStrides mask_strides(Mask mask, const Case& t) {
  switch (mask) {
    case Mask::none:
    case Mask::single:
      return {};
    case Mask::full:
      return {.batch = t.heads * t.queries * t.keys, .head = t.queries * t.keys, .row = t.keys, .key = 1};
    case Mask::per_key:
      return {.batch = t.keys, .key = 1};
    case Mask::per_query:
      return {.head = t.queries, .row = 1};
    case Mask::transposed:
      return {.batch = t.queries * t.keys, .row = 1, .key = t.queries};
  }
  return {};
}

int64_t mask_at(const MaskStrides& s, int64_t batch, int64_t head, int64_t query, int64_t key) {
  return batch * s.batch + head * s.head + query * s.row + key * s.key;
}

int64_t mask_size(Mask mask, const Case& t) {
  if (mask == Mask::none || t.batch * t.heads * t.queries * t.keys == 0) return 0;
  return mask_at(mask_strides(mask, t), t.batch - 1, t.heads - 1, t.queries - 1, t.keys - 1) + 1;
}

const float* row_of(const float* data, const HeadStrides& strides, int64_t batch, int64_t head, int64_t row) {
  return data + batch * strides.batch + head * strides.head + row * strides.row;
}

struct Weights {
  std::vector<double> of_key;
  double size = 1;  // of the largest score's terms, by which rounding is measured
};

Weights weights_of(const Attention& a, int64_t batch, int64_t head, int64_t query) {
  int64_t key_head = head / (a.heads / a.key_heads);
  Weights weights;
  double most = -infinity;
  for (int64_t key = 0; key < a.keys; ++key) {
    const float* q = row_of(a.query, a.query_strides, batch, head, query);
    const float* k = row_of(a.key, a.key_strides, batch, key_head, key);
    double score = 0;
    double size = 1;
    for (int64_t d = 0; d < a.depth; ++d) {
      double product = static_cast<double>(a.scale) * q[d] * k[d];
      score += product;
      size += std::abs(product);
    }
    weights.size = std::max(weights.size, size);
    if (a.added) score += a.added[mask_at(a.added_strides, batch, head, query, key)];
    if (a.allowed && !a.allowed[mask_at(a.allowed_strides, batch, head, query, key)]) score = -infinity;
    if (a.causal && key > query + a.causal_offset) score = -infinity;
    weights.of_key.push_back(score);
    most = std::max(most, score);
  }
  double sum = 0;
  for (double& weight : weights.of_key) sum += weight = std::exp(weight - most);
  for (double& weight : weights.of_key) weight /= sum;
  return weights;
}

void compare(const Attention& a) {
  for (int64_t batch = 0; batch < a.batch; ++batch)
    for (int64_t head = 0; head < a.heads; ++head)
      for (int64_t query = 0; query < a.queries; ++query) {
        Weights weights = weights_of(a, batch, head, query);
        const float* got = row_of(a.output, a.output_strides, batch, head, query);
        for (int64_t column = 0; column < a.columns; ++column) {
          double want = 0;
          for (int64_t key = 0; key < a.keys; ++key)
            want += weights.of_key[static_cast<size_t>(key)] *
                    row_of(a.value, a.value_strides, batch, head / (a.heads / a.key_heads), key)[column];
          ASSERT_EQ(std::isnan(got[column]), std::isnan(want)) << head << " " << query << " " << column;
          if (!std::isnan(want))
            ASSERT_NEAR(got[column], want, 1e-6 * weights.size) << head << " " << query << " " << column;
        }
      }
}

void run_all(const KernelTable& table, const Attention& attention, int threads) {
  AttentionPlan plan = plan_attention(table, attention, threads);
  // Backwards and one at a time: tasks may not depend on each other.
  for (int64_t task = plan.tasks; task-- > 0;) {
    TestScratch scratch(plan.scratch_bytes);
    run_attention(table, attention, plan, task, task + 1, scratch.data());
  }
}

void fill_masks(const Case& t, Random& random, Guarded& added, std::vector<uint8_t>& allowed) {
  for (int64_t i = 0; i < added.size(); ++i)
    if (pick(random, 0, 3) == 0) added[i] = -static_cast<float>(infinity);
  for (uint8_t& value : allowed) value = pick(random, 0, 2) > 0 ? 1 : 0;
  if (t.allowed == Mask::single && !allowed.empty()) allowed[0] = 1;
}

void check(const KernelTable& table, const Case& t, Random& random) {
  SCOPED_TRACE(fmt::format("{} {}x{} depth {} columns {} batch {} heads {}/{} masks {} {} causal {} {} threads {}",
                           table.name, t.queries, t.keys, t.depth, t.columns, t.batch, t.heads, t.key_heads,
                           static_cast<int>(t.added), static_cast<int>(t.allowed), t.causal, t.causal_offset,
                           t.threads));
  Guarded q(t.batch * t.heads * t.queries * t.depth, random, t.side);
  for (int64_t i = 0; i < q.size(); ++i) q[i] *= t.range;
  Guarded k(t.batch * t.key_heads * t.keys * t.depth, random, t.side);
  Guarded v(t.batch * t.key_heads * t.keys * t.columns, random, t.side);
  Guarded output(t.batch * t.heads * t.queries * t.columns, t.side);
  output.fill(untouched);
  Guarded added(mask_size(t.added, t), random, t.side);
  std::vector<uint8_t> allowed(static_cast<size_t>(mask_size(t.allowed, t)));
  fill_masks(t, random, added, allowed);
  Attention attention{.batch = t.batch,
                      .heads = t.heads,
                      .key_heads = t.key_heads,
                      .queries = t.queries,
                      .keys = t.keys,
                      .depth = t.depth,
                      .columns = t.columns,
                      .scale = 0.7f,
                      .query = q.data(),
                      .query_strides = strides_of(t.rows_outside, t.heads, t.queries, t.depth),
                      .key = k.data(),
                      .key_strides = strides_of(t.rows_outside, t.key_heads, t.keys, t.depth),
                      .value = v.data(),
                      .value_strides = strides_of(t.rows_outside, t.key_heads, t.keys, t.columns),
                      .output = output.data(),
                      .output_strides = strides_of(t.rows_outside, t.heads, t.queries, t.columns),
                      .added = t.added == Mask::none ? nullptr : added.data(),
                      .added_strides = mask_strides(t.added, t),
                      .allowed = t.allowed == Mask::none ? nullptr : allowed.data(),
                      .allowed_strides = mask_strides(t.allowed, t),
                      .causal = t.causal,
                      .causal_offset = t.causal_offset};
  run_all(table, attention, t.threads);
  compare(attention);
}

TEST(Attention, EveryNumberOfQueriesAndKeys) {
  Random random(1);
  for (const KernelTable* table : tested_tables())
    for (int64_t queries : {0, 1, 2, 5, 6, 7, 12, 13, 16, 23})
      for (int64_t keys : {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 71})
        check(*table, {.queries = queries, .keys = keys, .columns = 5 + queries % 5}, random);
}

TEST(Attention, EveryDepth) {
  Random random(2);
  for (const KernelTable* table : tested_tables())
    for (int64_t queries : {1, 2, 29})
      for (int64_t depth : {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 67})
        for (int64_t columns : {0, 1, 4, 8, 15, 16, 17, 32, 37, 64, 71, 129})
          check(*table,
                {.queries = queries,
                 .keys = 19,
                 .depth = depth,
                 .columns = columns,
                 .side = depth % 2 ? Guarded::Side::begin : Guarded::Side::end},
                random);
}

// Several blocks of keys and queries, and weights that differ by many powers of ten between blocks.
TEST(Attention, BeyondOneBlock) {
  Random random(3);
  for (const KernelTable* table : tested_tables())
    for (int64_t queries : {1, 3, 97, 211})
      for (int64_t keys : {149, 701})
        for (float range : {1.0f, 60.0f})
          check(*table, {.queries = queries, .keys = keys, .depth = 64, .columns = 64, .range = range}, random);
}

TEST(Attention, HeadsAndLayouts) {
  Random random(4);
  for (const KernelTable* table : tested_tables())
    for (int64_t queries : {1, 4, 30})
      for (auto [heads, key_heads] : {std::pair<int64_t, int64_t>{3, 3}, {6, 2}, {4, 1}, {0, 0}})
        for (bool rows_outside : {false, true})
          for (int threads : {1, 3})
            check(*table,
                  {.queries = queries,
                   .keys = 37,
                   .depth = 20,
                   .columns = 12,
                   .batch = 2,
                   .heads = heads,
                   .key_heads = std::max<int64_t>(key_heads, 1),
                   .rows_outside = rows_outside,
                   .threads = threads},
                  random);
}

TEST(Attention, Masks) {
  Random random(5);
  constexpr Mask masks[] = {Mask::none, Mask::full, Mask::per_key, Mask::per_query, Mask::single, Mask::transposed};
  for (const KernelTable* table : tested_tables())
    for (Mask added : masks)
      for (Mask allowed : masks)
        for (int64_t queries : {1, 21})
          for (int64_t keys : {9, 64, 301})
            check(*table,
                  {.queries = queries,
                   .keys = keys,
                   .batch = 2,
                   .heads = 4,
                   .key_heads = 2,
                   .added = added,
                   .allowed = allowed},
                  random);
}

TEST(Attention, Causal) {
  Random random(6);
  for (const KernelTable* table : tested_tables())
    for (int64_t queries : {1, 5, 33, 130})
      for (int64_t keys : {1, 33, 300})
        for (int64_t offset : {-7, -1, 0, 1, 40, 400})
          for (Mask added : {Mask::none, Mask::transposed})
            check(*table,
                  {.queries = queries,
                   .keys = keys,
                   .depth = 16,
                   .heads = 2,
                   .added = added,
                   .causal = true,
                   .causal_offset = offset,
                   .threads = 2},
                  random);
}

// A score of NaN or of +inf makes its whole row NaN and no other.
TEST(Attention, SpoiledScores) {
  Random random(7);
  for (const KernelTable* table : tested_tables())
    for (int64_t queries : {2, 40})
      for (float spoil : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
        for (int64_t at : {0, 3, 500}) {
          const int64_t keys = 601;
          Guarded q(queries * 8, random), k(keys * 8, random), v(keys * 8, random), output(queries * 8);
          Guarded added(queries * keys, random);
          added[keys + at] = spoil;
          Attention attention{.queries = queries,
                              .keys = keys,
                              .depth = 8,
                              .columns = 8,
                              .query = q.data(),
                              .query_strides = {.row = 8},
                              .key = k.data(),
                              .key_strides = {.row = 8},
                              .value = v.data(),
                              .value_strides = {.row = 8},
                              .output = output.data(),
                              .output_strides = {.row = 8},
                              .added = added.data(),
                              .added_strides = {.row = keys, .key = 1}};
          run_all(*table, attention, 1);
          compare(attention);
          ASSERT_TRUE(std::isnan(output[8]));
        }
}

TEST(Attention, ManyHeadsAreCutForThreads) {
  const KernelTable& kernels = table(best_isa());
  Attention attention{.heads = 12, .key_heads = 12, .queries = 128, .keys = 128, .depth = 64, .columns = 64};
  EXPECT_GE(plan_attention(kernels, attention, 4).tasks, 4);
  EXPECT_EQ(plan_attention(kernels, attention, 1).tasks, 1);
  attention.heads = attention.key_heads = 1;
  EXPECT_GE(plan_attention(kernels, attention, 4).tasks, 2);
  attention.queries = attention.keys = 8;
  EXPECT_EQ(plan_attention(kernels, attention, 4).tasks, 1);
}

}  // namespace
}  // namespace selkie::kernels
