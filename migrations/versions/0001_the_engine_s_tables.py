"""the engine's tables"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:

    op.create_table(
        "dead_letters",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("task_id", sa.UUID(), nullable=True),
        sa.Column("original_queue", sa.Text(), nullable=False),
        sa.Column("original_job_id", sa.Text(), nullable=False),
        sa.Column("original_job_data", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("failure_reason", sa.Text(), nullable=False),
        sa.Column("attempts_made", sa.SmallInteger(), nullable=False),
        sa.Column(
            "failed_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("error_class", sa.Text(), nullable=True),
        sa.Column("traceback", sa.Text(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("retried_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("dead_letters_pkey")),
    )
    op.create_index("dead_letters_cause_idx", "dead_letters", ["fingerprint", "failed_at"], unique=False)
    op.create_index(
        "dead_letters_open_idx",
        "dead_letters",
        ["task_id"],
        unique=True,
        postgresql_where=sa.text("retried_at is null"),
    )
    op.create_table(
        "leaders",
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("worker", sa.UUID(), nullable=False),
        sa.Column(
            "since",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("role", name=op.f("leaders_pkey")),
    )
    op.create_table(
        "limits",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("task_name", sa.Text(), nullable=True),
        sa.Column("step", postgresql.INTERVAL(), nullable=True),
        sa.Column("tat", postgresql.TIMESTAMP(timezone=True), server_default=sa.text("'-infinity'"), nullable=False),
        sa.Column("max_running", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("limits_pkey")),
        postgresql_with={"fillfactor": "10"},
    )
    op.create_index("limits_queue_idx", "limits", ["queue"], unique=False)
    op.create_table(
        "queue_states",
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("paused_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("paused_until", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("statistics", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.PrimaryKeyConstraint("queue", name=op.f("queue_states_pkey")),
    )
    op.create_table(
        "sends",
        sa.Column("task_id", sa.UUID(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("chat", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("repeats", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("message_id", sa.BigInteger(), nullable=True),
        sa.Column("result", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column(
            "created_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint("state in ('intent', 'sent', 'not_sent', 'unknown')", name=op.f("sends_state_check")),
        sa.PrimaryKeyConstraint("task_id", "key", name=op.f("sends_pkey")),
    )
    op.create_table(
        "task_events",
        sa.Column("id", sa.BigInteger(), autoincrement=True, nullable=False),
        sa.Column("task_id", sa.UUID(), nullable=False),
        sa.Column(
            "at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), server_default="", nullable=False),
        sa.Column("attempt", sa.SmallInteger(), nullable=True),
        sa.Column("seconds", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("task_events_pkey")),
    )
    op.create_index("task_events_task_idx", "task_events", ["task_id", "id"], unique=False)
    op.create_table(
        "tasks",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), nullable=True),
        sa.Column("bot_id", sa.BigInteger(), nullable=True),
        sa.Column("chat", sa.BigInteger(), nullable=True),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("task_name", sa.Text(), nullable=False),
        sa.Column("params", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("status", sa.Text(), server_default="pending", nullable=False),
        sa.Column("phase", sa.Text(), nullable=True),
        sa.Column("priority", sa.SmallInteger(), server_default=sa.text("5"), nullable=False),
        sa.Column("attempt", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("max_attempts", sa.SmallInteger(), nullable=False),
        sa.Column("crashes", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("worker", sa.UUID(), nullable=True),
        sa.Column("token", sa.UUID(), nullable=True),
        sa.Column(
            "run_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column(
            "wake_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("expires_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("cancel_requested_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("started_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("finished_at", postgresql.TIMESTAMP(timezone=True), nullable=True),
        sa.Column("idempotency_key", sa.Text(), nullable=True),
        sa.Column("schedule_id", sa.UUID(), nullable=True),
        sa.Column("progress", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("result_payload", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("error_class", sa.Text(), nullable=True),
        sa.Column("error_traceback", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "status <> 'in_progress' or (worker is not null and token is not null and started_at is not null and finished_at is null and attempt > 0)",
            name=op.f("tasks_in_progress_check"),
        ),
        sa.CheckConstraint(
            "status <> 'pending' or (token is null and finished_at is null)", name=op.f("tasks_pending_check")
        ),
        sa.CheckConstraint(
            "status in ('pending', 'in_progress', 'completed', 'failed', 'unknown', 'cancelled', 'expired')",
            name=op.f("tasks_status_check"),
        ),
        sa.CheckConstraint(
            "status not in ('cancelled', 'completed', 'expired', 'failed', 'unknown') or (token is null and finished_at is not null)",
            name=op.f("tasks_final_check"),
        ),
        sa.CheckConstraint(
            "status not in ('failed', 'unknown') or error_message is not null", name=op.f("tasks_error_check")
        ),
        sa.CheckConstraint(
            "attempt >= 0 and attempt <= max_attempts and crashes >= 0", name=op.f("tasks_counts_check")
        ),
        sa.CheckConstraint("priority between 1 and 9", name=op.f("tasks_priority_check")),
        sa.PrimaryKeyConstraint("id", name=op.f("tasks_pkey")),
        postgresql_with={
            "fillfactor": "70",
            "autovacuum_vacuum_scale_factor": "0.01",
            "autovacuum_vacuum_threshold": "5000",
            "autovacuum_vacuum_cost_delay": "0",
            "autovacuum_analyze_scale_factor": "0.02",
        },
    )
    op.create_index(
        "tasks_due_idx",
        "tasks",
        ["queue", "priority", "wake_at"],
        unique=False,
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index(
        "tasks_expiring_idx",
        "tasks",
        ["expires_at"],
        unique=False,
        postgresql_where=sa.text("status = 'pending' and expires_at is not null"),
    )
    op.create_index(
        "tasks_idempotency_key_idx",
        "tasks",
        ["idempotency_key"],
        unique=True,
        postgresql_where=sa.text("idempotency_key is not null"),
    )
    op.create_index(
        "tasks_running_idx",
        "tasks",
        ["queue", "worker"],
        unique=False,
        postgresql_where=sa.text("status = 'in_progress'"),
    )
    op.create_index(
        "tasks_trouble_idx",
        "tasks",
        ["id"],
        unique=False,
        postgresql_where=sa.text("status in ('failed', 'unknown')"),
    )
    op.create_index(
        "tasks_user_idx",
        "tasks",
        ["user_id", "id"],
        unique=False,
        postgresql_where=sa.text("user_id is not null"),
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("process_start", sa.Text(), nullable=False),
        sa.Column("queues", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("threads", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "booted_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column(
            "beat_at",
            postgresql.TIMESTAMP(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("dead", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("death", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("workers_pkey")),
        postgresql_with={"fillfactor": "50"},
    )
    op.create_index("workers_living_idx", "workers", ["host"], unique=False, postgresql_where=sa.text("not dead"))


def downgrade() -> None:

    op.drop_index("workers_living_idx", table_name="workers", postgresql_where=sa.text("not dead"))
    op.drop_table("workers")
    op.drop_index("tasks_user_idx", table_name="tasks", postgresql_where=sa.text("user_id is not null"))
    op.drop_index("tasks_trouble_idx", table_name="tasks", postgresql_where=sa.text("status in ('failed', 'unknown')"))
    op.drop_index("tasks_running_idx", table_name="tasks", postgresql_where=sa.text("status = 'in_progress'"))
    op.drop_index(
        "tasks_idempotency_key_idx",
        table_name="tasks",
        postgresql_where=sa.text("idempotency_key is not null"),
    )
    op.drop_index(
        "tasks_expiring_idx",
        table_name="tasks",
        postgresql_where=sa.text("status = 'pending' and expires_at is not null"),
    )
    op.drop_index("tasks_due_idx", table_name="tasks", postgresql_where=sa.text("status = 'pending'"))
    op.drop_table("tasks")
    op.drop_index("task_events_task_idx", table_name="task_events")
    op.drop_table("task_events")
    op.drop_table("sends")
    op.drop_table("queue_states")
    op.drop_index("limits_queue_idx", table_name="limits")
    op.drop_table("limits")
    op.drop_table("leaders")
    op.drop_index("dead_letters_open_idx", table_name="dead_letters", postgresql_where=sa.text("retried_at is null"))
    op.drop_index("dead_letters_cause_idx", table_name="dead_letters")
    op.drop_table("dead_letters")
