// Packing, planning and running of recurrent layers.
#include "kernels/recurrent.h"

#include <algorithm>
#include <cstring>

#include "kernels/block.h"

namespace selkie::kernels {
namespace {

// Gates whose products are made together.
struct Part {
  int64_t first_gate;
  int64_t gates;
  GateKind kind;
};
struct Parts {
  std::array<Part, 2> part;
  int64_t count;
};

Parts parts_of(const RecurrentShape& shape) {
  if (shape.kind == RecurrentKind::lstm) return {.part = {{{0, 4, lstm_kind}}}, .count = 1};
  if (shape.kind == RecurrentKind::rnn) return {.part = {{{0, 1, rnn_kind}}}, .count = 1};
  if (shape.linear_before_reset) return {.part = {{{0, 3, gru_kind}}}, .count = 1};
  return {.part = {{{0, 2, gru_reset_kind}, {2, 1, gru_candidate_kind}}}, .count = 2};
}

int64_t gates_of(RecurrentKind kind) { return kind == RecurrentKind::lstm ? 4 : kind == RecurrentKind::gru ? 3 : 1; }

int64_t padded_hidden(const KernelTable& table, const RecurrentShape& shape) {
  return round_up(shape.hidden, table.lanes);
}
int64_t columns_of(const KernelTable& table, const RecurrentShape& shape) {
  return gates_of(shape.kind) * padded_hidden(table, shape);
}

// One direction's packed weights: where each part lies in the floats.
template <class T>
struct Packed {
  T* w;                 // panels over the columns of all parts
  std::array<T*, 2> r;  // panels of each part
  T* input_bias;        // one per column
  T* state_bias;
  std::array<T*, 3> peepholes;  // one per hidden unit
  int64_t elements;

  Packed(const KernelTable& table, const RecurrentShape& shape, T* base) {
    int64_t used = 0;
    auto take = [&](int64_t count) {
      T* at = base ? base + used : nullptr;
      used += round_up(count, 16);
      return at;
    };
    int64_t hidden = padded_hidden(table, shape);
    Parts parts = parts_of(shape);
    w = take(static_cast<int64_t>(packed_b_elements(table, shape.input, columns_of(table, shape))));
    for (int64_t p = 0; p < 2; ++p) {
      int64_t columns = p < parts.count ? parts.part[static_cast<size_t>(p)].gates * hidden : 0;
      r[static_cast<size_t>(p)] = take(static_cast<int64_t>(packed_b_elements(table, shape.hidden, columns)));
    }
    input_bias = take(columns_of(table, shape));
    state_bias = take(columns_of(table, shape));
    for (T*& peephole : peepholes) peephole = take(shape.kind == RecurrentKind::lstm ? hidden : 0);
    elements = used;
  }
};

// Calls f(column, row, count) for each vector of gates: `count` rows of ONNX's matrix from `row` on become the columns
// from `column` on, counted from the part's first.
template <class F>
void for_each_vector(const KernelTable& table, const RecurrentShape& shape, const Part& part, F f) {
  for (int64_t unit = 0; unit < shape.hidden; unit += table.lanes)
    for (int64_t gate = 0; gate < part.gates; ++gate)
      f(unit * part.gates + gate * table.lanes, (part.first_gate + gate) * shape.hidden + unit,
        std::min<int64_t>(table.lanes, shape.hidden - unit));
}

void pack_direction(const KernelTable& table, const RecurrentShape& shape, const RecurrentWeights& from,
                    const Packed<float>& to) {
  Parts parts = parts_of(shape);
  int64_t width = table.tile_columns;
  int64_t begin = 0;
  for (int64_t p = 0; p < parts.count; ++p) {
    const Part& part = parts.part[static_cast<size_t>(p)];
    for_each_vector(table, shape, part, [&](int64_t column, int64_t row, int64_t count) {
      auto pack = [&](const float* matrix, int64_t depth, int64_t to_column, float* panels) {
        table.transpose(matrix + row * depth, depth, count, depth,
                        panels + to_column / width * width * depth + to_column % width, width);
      };
      pack(from.w, shape.input, begin + column, to.w);
      pack(from.r, shape.hidden, column, to.r[static_cast<size_t>(p)]);
      if (!from.bias) return;
      std::copy_n(from.bias + row, count, to.input_bias + begin + column);
      std::copy_n(from.bias + gates_of(shape.kind) * shape.hidden + row, count, to.state_bias + begin + column);
    });
    begin += part.gates * padded_hidden(table, shape);
  }
  if (!from.peepholes) return;
  for (int64_t i = 0; i < 3; ++i)
    std::copy_n(from.peepholes + i * shape.hidden, shape.hidden, to.peepholes[static_cast<size_t>(i)]);
}

// What stages leave for each other.
struct Memory {
  float* projected;         // [directions, steps * batch, columns]
  std::array<float*, 2> h;  // [directions, batch, padded hidden], read and written by turns
  float* c;
  float* reset_h;  // of a GRU that resets before the product
  float* update;
  size_t bytes;

  Memory(const KernelTable& table, const RecurrentShape& shape, void* base) {
    Scratch scratch(base);
    int64_t state = shape.directions * shape.batch * padded_hidden(table, shape);
    bool two_phases = parts_of(shape).count == 2;
    projected = scratch.take<float>(shape.directions * shape.steps * shape.batch * columns_of(table, shape));
    h = {scratch.take<float>(state), scratch.take<float>(state)};
    c = scratch.take<float>(shape.kind == RecurrentKind::lstm ? state : 0);
    reset_h = scratch.take<float>(two_phases ? state : 0);
    update = scratch.take<float>(two_phases ? state : 0);
    bytes = scratch.used();
  }
};

struct StepScratch {
  const float** pointers;
  int64_t* rows;  // the batch's members that take part in the step
  float* products;
  size_t bytes;

  StepScratch(const KernelTable& table, const RecurrentShape& shape, const RecurrentPlan& plan, void* base) {
    Scratch scratch(base);
    pointers = scratch.take<const float*>(plan.rows_of_block);
    rows = scratch.take<int64_t>(plan.rows_of_block);
    products = scratch.take<float>(plan.rows_of_block * plan.groups_of_piece * gates_of(shape.kind) * table.lanes);
    bytes = scratch.used();
  }
};

Gemm projection_of(const KernelTable& table, const Recurrent& recurrent, int64_t direction, float* projected) {
  const RecurrentShape& shape = recurrent.shape;
  int64_t columns = columns_of(table, shape);
  int64_t rows = shape.steps * shape.batch;
  Packed<const float> packed(table, shape, recurrent.packed);
  const float* base = recurrent.packed + direction * packed.elements;
  return {.m = rows,
          .n = columns,
          .k = shape.input,
          .a = recurrent.x,
          .a_row_stride = shape.input,
          .packed_b = base,
          .c = projected ? projected + direction * rows * columns : nullptr,
          .c_row_stride = columns,
          .bias = base + (packed.input_bias - packed.w)};
}

int64_t length_of(const Recurrent& recurrent, int64_t row) {
  return recurrent.lengths ? recurrent.lengths[row] : recurrent.shape.steps;
}

// Copies the initial states, which are the last ones of empty sequences, and clears y beyond the lengths.
void begin_states(const KernelTable& table, const Recurrent& recurrent, const Memory& memory) {
  const RecurrentShape& shape = recurrent.shape;
  int64_t padded = padded_hidden(table, shape);
  bool lstm = shape.kind == RecurrentKind::lstm;
  for (int64_t direction = 0; direction < shape.directions; ++direction) {
    for (int64_t row = 0; row < shape.batch; ++row) {
      int64_t at = direction * recurrent.state_strides.direction + row * recurrent.state_strides.batch;
      int64_t own = (direction * shape.batch + row) * padded;
      auto begin = [&](const float* initial, float* state, float* last) {
        std::fill_n(state, padded, 0.0f);
        if (initial) std::copy_n(initial + at, shape.hidden, state);
        if (last && length_of(recurrent, row) == 0) std::copy_n(state, shape.hidden, last + at);
      };
      begin(recurrent.initial_h, memory.h[0] + own, recurrent.y_h);
      if (lstm) begin(recurrent.initial_c, memory.c + own, recurrent.y_c);
      if (!recurrent.y) continue;
      float* y = recurrent.y + direction * recurrent.y_strides.direction + row * recurrent.y_strides.batch;
      for (int64_t step = length_of(recurrent, row); step < shape.steps; ++step)
        std::fill_n(y + step * recurrent.y_step_stride, shape.hidden, 0.0f);
    }
  }
}

// One phase of a step for a range of hidden units of one direction.
class StepTask {
 public:
  StepTask(const KernelTable& table, const Recurrent& recurrent, const RecurrentPlan& plan, const Memory& memory,
           const StepScratch& scratch, int64_t stage, int64_t task)
      : table_(table),
        recurrent_(recurrent),
        shape_(recurrent.shape),
        plan_(plan),
        memory_(memory),
        scratch_(scratch),
        step_((stage - 1) / plan.phases),
        phase_((stage - 1) % plan.phases),
        direction_(task / plan.tasks_of_direction),
        padded_(padded_hidden(table, shape_)),
        group_begin_(task % plan.tasks_of_direction * plan.groups_of_task),
        group_end_(std::min(padded_ / table.lanes, group_begin_ + plan.groups_of_task)),
        part_(parts_of(shape_).part[static_cast<size_t>(phase_)]),
        part_column_(part_.first_gate * padded_),
        packed_(table, shape_,
                recurrent.packed + direction_ * Packed<const float>(table, shape_, recurrent.packed).elements) {}

  void run() {
    for_each_part(group_begin_, group_end_, plan_.groups_of_piece,
                  [&](int64_t begin, int64_t end) { run_piece(begin, end); });
  }

 private:
  // Calls f(begin, end) for all parts. Every other step goes backwards: what it reads first is what the step before has
  // left in the second-level cache.
  template <class F>
  void for_each_part(int64_t begin, int64_t end, int64_t groups_of_part, F f) const {
    int64_t parts = ceil_divide(end - begin, groups_of_part);
    for (int64_t i = 0; i < parts; ++i) {
      int64_t first = begin + (step_ % 2 == 0 ? i : parts - 1 - i) * groups_of_part;
      f(first, std::min(end, first + groups_of_part));
    }
  }

  int64_t state_at(int64_t row) const { return (direction_ * shape_.batch + row) * padded_; }
  const float* before(int64_t row) const { return memory_.h[static_cast<size_t>(step_ % 2)] + state_at(row); }
  float* after(int64_t row) const { return memory_.h[static_cast<size_t>((step_ + 1) % 2)] + state_at(row); }
  // The step of the sequence that this row is at.
  int64_t time(int64_t row) const {
    bool reversed = recurrent_.reversed[static_cast<size_t>(direction_)];
    return reversed ? length_of(recurrent_, row) - 1 - step_ : step_;
  }

  void run_piece(int64_t group_begin, int64_t group_end) {
    int64_t row = 0;
    while (row < shape_.batch) {
      int64_t count = 0;
      for (; row < shape_.batch && count < plan_.rows_of_block; ++row)
        if (step_ < length_of(recurrent_, row)) scratch_.rows[count++] = row;
      if (count) run_rows(count, group_begin, group_end);
    }
  }

  void run_rows(int64_t count, int64_t group_begin, int64_t group_end) {
    int64_t width = table_.tile_columns;
    int64_t columns_of_group = part_.gates * table_.lanes;
    int64_t stride = (group_end - group_begin) * columns_of_group;
    auto state = [&](int64_t i, int64_t) {
      int64_t row = scratch_.rows[i];
      return part_.kind == gru_candidate_kind ? memory_.reset_h + state_at(row) : before(row);
    };
    fill_pointers(table_, count, 1, state, scratch_.pointers);
    for_each_part(group_begin, group_end, plan_.groups_of_product, [&](int64_t begin, int64_t end) {
      int64_t first = begin * columns_of_group;
      multiply_block(table_, {.rows = count,
                              .pointers = scratch_.pointers,
                              .depth = shape_.hidden,
                              .b = {.base = packed_.r[static_cast<size_t>(phase_)] + first * shape_.hidden,
                                    .panel_stride = shape_.hidden * width,
                                    .depth_stride = width},
                              .c = scratch_.products + (begin - group_begin) * columns_of_group,
                              .c_stride = stride,
                              .column_end = (end - begin) * columns_of_group,
                              .bias = packed_.state_bias + part_column_ + first});
    });
    for (int64_t i = 0; i < count; ++i)
      run_gates(scratch_.rows[i], scratch_.products + i * stride, group_begin, group_end);
  }

  void run_gates(int64_t row, const float* products, int64_t group_begin, int64_t group_end) {
    int64_t unit = group_begin * table_.lanes;
    int64_t state = state_at(row) + unit;
    int64_t t = time(row);
    int64_t projected_row = recurrent_.batch_first ? row * shape_.steps + t : t * shape_.batch + row;
    int64_t projected_rows = direction_ * shape_.steps * shape_.batch + projected_row;
    bool resets = part_.kind == gru_reset_kind;
    bool two_phases = plan_.phases == 2;
    auto peephole = [&](size_t i) { return recurrent_.peepholes ? packed_.peepholes[i] + unit : nullptr; };
    const RecurrentFunctions& functions = recurrent_.functions[static_cast<size_t>(direction_)];
    table_.gates[part_.kind]({.groups = group_end - group_begin,
                              .products = products,
                              .projected = memory_.projected + projected_rows * columns_of(table_, shape_) +
                                           part_column_ + group_begin * part_.gates * table_.lanes,
                              .before = before(row) + unit,
                              .after = resets ? memory_.reset_h + state : after(row) + unit,
                              .cell = shape_.kind == RecurrentKind::lstm ? memory_.c + state : nullptr,
                              .update = two_phases ? memory_.update + state : nullptr,
                              .peepholes = {peephole(0), peephole(1), peephole(2)},
                              .functions = {functions[0], functions[1], functions[2]}});
    if (!resets) write_results(row, t, unit, std::min(shape_.hidden, group_end * table_.lanes) - unit);
  }

  void write_results(int64_t row, int64_t t, int64_t unit, int64_t units) {
    const float* h = after(row) + unit;
    if (recurrent_.y) {
      const StateStrides& strides = recurrent_.y_strides;
      int64_t at = t * recurrent_.y_step_stride + direction_ * strides.direction + row * strides.batch;
      std::copy_n(h, units, recurrent_.y + at + unit);
    }
    if (step_ + 1 < length_of(recurrent_, row)) return;
    int64_t at = direction_ * recurrent_.state_strides.direction + row * recurrent_.state_strides.batch + unit;
    if (recurrent_.y_h) std::copy_n(h, units, recurrent_.y_h + at);
    if (recurrent_.y_c && shape_.kind == RecurrentKind::lstm)
      std::copy_n(memory_.c + state_at(row) + unit, units, recurrent_.y_c + at);
  }

  const KernelTable& table_;
  const Recurrent& recurrent_;
  const RecurrentShape& shape_;
  const RecurrentPlan& plan_;
  const Memory& memory_;
  const StepScratch& scratch_;
  int64_t step_;
  int64_t phase_;
  int64_t direction_;
  int64_t padded_;
  int64_t group_begin_;
  int64_t group_end_;
  Part part_;
  int64_t part_column_;
  Packed<const float> packed_;
};

// A step ends when its slowest task does, so there is one task for each thread; less than some microseconds of work
// are not worth a thread.
int64_t tasks_of_step(const KernelTable& table, const RecurrentShape& shape, int threads) {
  constexpr double least_products = 1e5;
  double products = static_cast<double>(columns_of(table, shape)) * static_cast<double>(shape.hidden * shape.batch);
  auto worth = static_cast<int64_t>(std::min(products / least_products, 1e6));
  return std::clamp<int64_t>(worth, 1, ceil_divide(threads, shape.directions));
}

}  // namespace

size_t packed_recurrent_elements(const KernelTable& table, const RecurrentShape& shape) {
  return static_cast<size_t>(shape.directions * Packed<const float>(table, shape, nullptr).elements);
}

void pack_recurrent(const KernelTable& table, const RecurrentShape& shape, const RecurrentWeights& weights,
                    float* packed) {
  std::memset(packed, 0, packed_recurrent_elements(table, shape) * sizeof(float));
  int64_t rows = gates_of(shape.kind) * shape.hidden;
  for (int64_t direction = 0; direction < shape.directions; ++direction) {
    Packed<float> to(table, shape, packed);
    packed += to.elements;
    pack_direction(table, shape,
                   {.w = weights.w + direction * rows * shape.input,
                    .r = weights.r + direction * rows * shape.hidden,
                    .bias = weights.bias ? weights.bias + direction * 2 * rows : nullptr,
                    .peepholes = weights.peepholes ? weights.peepholes + direction * 3 * shape.hidden : nullptr},
                   to);
  }
}

RecurrentPlan plan_recurrent(const KernelTable& table, const Recurrent& recurrent, int threads) {
  const RecurrentShape& shape = recurrent.shape;
  RecurrentPlan plan{};
  plan.directions = shape.directions;
  plan.steps = shape.steps;
  plan.phases = parts_of(shape).count;
  plan.projection = plan_gemm(table, projection_of(table, recurrent, 0, nullptr), threads);
  // A task begins with a whole panel, which may hold one gate of two groups.
  int64_t groups = padded_hidden(table, shape) / table.lanes;
  int64_t tasks = tasks_of_step(table, shape, threads);
  plan.groups_of_task = std::max<int64_t>(2, round_up(ceil_divide(groups, tasks), 2));
  plan.tasks_of_direction = shape.batch ? ceil_divide(groups, plan.groups_of_task) : 0;
  plan.rows_of_block = std::clamp<int64_t>(shape.batch, 1, 8 * table.tile_rows);
  // A piece's products stay in the first-level cache; its weights stay in the second-level one where several blocks of
  // rows use them. Where one block does, products are made in parts of which the cache holds several.
  int64_t columns_of_group = gates_of(shape.kind) * table.lanes;
  int64_t weights_of_group = 4 * columns_of_group * std::max<int64_t>(1, shape.hidden);
  auto even = [](int64_t count, int64_t most) { return std::max<int64_t>(2, std::min(count, most) / 2 * 2); };
  int64_t piece = cache_sizes().l1 / 2 / (4 * columns_of_group * plan.rows_of_block);
  if (shape.batch > plan.rows_of_block) piece = std::min(piece, cache_sizes().l2 / 2 / weights_of_group);
  plan.groups_of_piece = even(piece, plan.groups_of_task);
  plan.groups_of_product = even(cache_sizes().l2 / 4 / weights_of_group, plan.groups_of_piece);
  plan.memory_bytes = Memory(table, shape, nullptr).bytes;
  plan.scratch_bytes = std::max(StepScratch(table, shape, plan, nullptr).bytes, plan.projection.scratch_bytes);
  return plan;
}

void run_recurrent_stage(const KernelTable& table, const Recurrent& recurrent, const RecurrentPlan& plan, int64_t stage,
                         int64_t task_begin, int64_t task_end, void* memory, void* scratch) {
  Memory shared(table, recurrent.shape, memory);
  if (stage > 0) {
    StepScratch parts(table, recurrent.shape, plan, scratch);
    for (int64_t task = task_begin; task < task_end; ++task)
      StepTask(table, recurrent, plan, shared, parts, stage, task).run();
    return;
  }
  int64_t tasks = plan.projection.tasks();
  for (int64_t task = task_begin; task < task_end; ++task) {
    if (task == plan.directions * tasks) {
      begin_states(table, recurrent, shared);
      continue;
    }
    Gemm projection = projection_of(table, recurrent, task / tasks, shared.projected);
    run_gemm(table, projection, plan.projection, task % tasks, task % tasks + 1, scratch);
  }
}

void run_recurrent(const KernelTable& table, const Recurrent& recurrent, const RecurrentPlan& plan, void* memory,
                   void* scratch) {
  for (int64_t stage = 0; stage < plan.stages(); ++stage)
    run_recurrent_stage(table, recurrent, plan, stage, 0, plan.tasks(stage), memory, scratch);
}

}  // namespace selkie::kernels
