"""what deleted rows had counted for"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "pruned_activity",
        sa.Column("slot", postgresql.TIMESTAMP(timezone=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("bucket", sa.SmallInteger(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("sample", sa.Boolean(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("task_name", sa.Text(), nullable=True),
        sa.Column("error_class", sa.Text(), nullable=True),
        sa.Column("words", sa.Text(), nullable=True),
        sa.CheckConstraint("kind in ('task', 'send') and number > 0", name=op.f("pruned_activity_kind_check")),
        sa.PrimaryKeyConstraint(
            "slot", "kind", "queue", "outcome", "bucket", "cause", "sample", name=op.f("pruned_activity_pkey")
        ),
    )
    # BRIN: a few kilobytes, and next to nothing for each run. A row's end and a send's birth lie in the order of the pages.
    op.create_index("tasks_finished_idx", "tasks", ["finished_at"], postgresql_using="brin")
    op.create_index("sends_created_idx", "sends", ["created_at"], postgresql_using="brin")


def downgrade() -> None:
    op.drop_index("sends_created_idx", table_name="sends")
    op.drop_index("tasks_finished_idx", table_name="tasks")
    op.drop_table("pruned_activity")
